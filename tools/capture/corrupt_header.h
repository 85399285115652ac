/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_CAPTURE_CORRUPT_HEADER_H
#define URXE_CAPTURE_CORRUPT_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For a frame that does not parse as RoCE, or that the parser refuses for its IP header: is it a
 * RoCEv2 packet with one corrupt field, IP version, IHL, fragment field, protocol or UDP port? True
 * if the ICRC, which covers these fields, is right after one of them is set to its value in RoCEv2
 * packets. cmd_replay.c calls this.
 */
bool corrupt_header_hides_roce(const uint8_t *frame, uint32_t len);

#endif
