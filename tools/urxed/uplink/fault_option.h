/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parser of --fault: impairments of the frames on uplinks, for tests of recovery. urxed's option
 * parser calls this; netdev/impair.c impairs the frames. */
#ifndef URXE_URXED_UPLINK_FAULT_OPTION_H
#define URXE_URXED_UPLINK_FAULT_OPTION_H

#include <stdbool.h>

#include <netdev/netdev.h>

#define FAULT_OPTION_ERROR 256

struct uplink_impair {
	bool asked;     /* --fault was given */
	bool both_ways; /* impairs also received frames, not only sent ones */
	struct netdev_impairment tx, rx;
};

/*
 * Parses KEY=VALUE[,KEY=VALUE]...: drop, duplicate, reorder, corrupt (fractions), delay,
 * reorder-time (times), seed, and way: both (the default) or out. Returns 0, or -EINVAL and a
 * sentence in `error`.
 */
int fault_option_parse(const char *text, struct uplink_impair *impair,
		       char error[FAULT_OPTION_ERROR]);

#endif
