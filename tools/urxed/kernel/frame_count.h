/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads how many frames an interface of the kernel has carried, from /proc/net/dev (proc(5)). */
#ifndef URXE_URXED_KERNEL_FRAME_COUNT_H
#define URXE_URXED_KERNEL_FRAME_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct frame_count {
	uint64_t received, sent;
};

/* False: the line belongs to another interface, or is no line of an interface. */
bool frame_count_parse(const char *line, const char *ifname, struct frame_count *count);
/* The frames of an interface in this network namespace; both 0 if it does not exist. */
struct frame_count frame_count_read(const char *ifname);

#endif
