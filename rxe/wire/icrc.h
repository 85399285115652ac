/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Invariant CRC of a packet that is being built. rxe/packet.h declares the check of a received
 * packet (urxe_packet_icrc_ok). */
#ifndef URXE_WIRE_ICRC_H
#define URXE_WIRE_ICRC_H

#include <stdint.h>

#include <rxe/packet.h>

/*
 * Packets up to this length, from the L3 header on, are copied, masked and summed in one call. Two
 * calls take twice as long for short packets (EPYC: 16 ns for 60 bytes in one call, 36 ns for 40
 * and 20 bytes in two). Smaller limits make no packet faster.
 */
#define ICRC_FIRST 256

/* The CRC of the first n bytes of a packet, from the L3 header on; crc32_gzip_refl can continue it.
 * Overwrites the fields that routers may change with ones, so the caller passes a copy. */
uint32_t urxe_icrc_start(enum urxe_net net, uint8_t *l3, uint32_t l3_len, uint64_t n);

/* Writes the ICRC as little-endian, unlike all other fields of a packet, which are big-endian. */
void urxe_icrc_put(uint8_t *at, uint32_t icrc);

#endif
