/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_SIM_NETWORK_ECN_H
#define URXE_SIM_NETWORK_ECN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Sets "congestion experienced" in an ECN-capable IPv4 or IPv6 frame (RFC 3168, 5); false: the
 * frame is not ECN-capable, and stays as it is. fabric.c calls this.
 */
bool ecn_mark(uint8_t *frame, uint32_t len);

#endif
