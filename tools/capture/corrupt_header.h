/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_CAPTURE_CORRUPT_HEADER_H
#define URXE_CAPTURE_CORRUPT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether a frame that is not RoCE is a RoCEv2 packet whose IP version, protocol or UDP port
 * was damaged. The ICRC covers these, but they are what a RoCE packet is known by:
 * it is one if its ICRC is right once that field says what a RoCEv2 packet's does.
 */
bool corrupt_header_hides_roce(const uint8_t *frame, uint32_t len);

#endif
