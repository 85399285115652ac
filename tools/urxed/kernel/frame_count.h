/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads how many frames an interface of the kernel has carried, from /proc/net/dev (proc(5)). */
#ifndef URXE_URXED_KERNEL_FRAME_COUNT_H
#define URXE_URXED_KERNEL_FRAME_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct frame_count {
	uint64_t received, sent;
};

/* Reads a line of that file. Returns false if the line is of another interface or of none. */
bool frame_count_parse(const char *line, const char *ifname, struct frame_count *count);
/* Returns the frames of an interface in this network namespace; both 0 if the interface does not
 * exist. */
struct frame_count frame_count_read(const char *ifname);

#endif
