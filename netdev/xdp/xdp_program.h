/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The XDP program that an interface has. */
#ifndef URXE_NETDEV_XDP_XDP_PROGRAM_H
#define URXE_NETDEV_XDP_XDP_PROGRAM_H

#include <stdint.h>

/*
 * Takes urxe's own program off an interface where no socket gets frames by it: a process that was
 * killed leaves it. -EBUSY: the interface has a program that is in use, or not known to be urxe's;
 * that stays. 0 where there is none now. On error `why` gets a sentence, which begins with `text`.
 */
int xdp_program_clear(const char *text, unsigned int ifindex, char *why, uint32_t why_size);

#endif
