/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_SIM_ECN_H
#define URXE_SIM_ECN_H

#include <stdbool.h>
#include <stdint.h>

/* Sets "congestion experienced" in a RoCEv2 frame whose sender is capable of it (RFC 3168, 5);
 * false where it is not. */
bool ecn_mark(uint8_t *frame, uint32_t len);

#endif
