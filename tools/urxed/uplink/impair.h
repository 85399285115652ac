/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What --fault asks for: faults on the frames of the uplinks, each way. */
#ifndef URXE_URXED_UPLINK_IMPAIR_H
#define URXE_URXED_UPLINK_IMPAIR_H

#include <stdbool.h>

#include <netdev/netdev.h>

#define IMPAIR_ERROR 256

struct uplink_impair {
	bool asked;
	bool both_ways; /* rx counts too; else faults are for what is sent alone */
	struct netdev_fault tx, rx;
};

/*
 * Reads KEY=VALUE[,KEY=VALUE]...: drop, duplicate, reorder, corrupt (shares), delay, reorder-time
 * (times), seed, and way: both (the default) or out. 0, or -EINVAL and a sentence in `error`.
 */
int impair_parse(const char *text, struct uplink_impair *fault, char error[IMPAIR_ERROR]);

#endif
