/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Removes urxe's XDP program that a killed process left on an interface. */
#ifndef URXE_NETDEV_XDP_XDP_PROGRAM_H
#define URXE_NETDEV_XDP_XDP_PROGRAM_H

#include <stdint.h>

/*
 * Detaches urxe's own program if no socket uses it. 0: the interface has no program now. -EBUSY: it
 * has one that a socket uses or that is not urxe's, and that stays. `error` gets a sentence, which
 * begins with `text`.
 */
int xdp_program_clear(const char *text, unsigned int ifindex, char *error, uint32_t error_size);

#endif
