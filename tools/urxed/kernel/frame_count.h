/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads how many frames an interface of the kernel has carried, from /proc/net/dev (proc(5)). */
#ifndef URXE_URXED_KERNEL_FRAME_COUNT_H
#define URXE_URXED_KERNEL_FRAME_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The line of an interface: received plus sent frames. False: the line belongs to another
 * interface, or is no such line.
 */
bool frame_count_parse(const char *line, const char *ifname, uint64_t *frames);
/* Received plus sent frames of an interface in this network namespace; 0: it does not exist. */
uint64_t frame_count_read(const char *ifname);

#endif
