/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes RoCE frames from their fields and computes the ICRC without the engine's code: a CRC of
 * four bits at a time over a masked copy.
 */
#ifndef URXE_TEST_CRAFT_H
#define URXE_TEST_CRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/packet.h>

#define CRAFT_MAX 8192

/*
 * Writes the frame that p's fields describe (l3, bth and icrc are not read;
 * payload_len bytes at payload are) and returns its length. The pad count is
 * p->pad, whatever the payload's length.
 */
uint32_t craft_frame(uint8_t frame[CRAFT_MAX], const struct urxe_packet *p);

/*
 * Writes the right ICRC to the place that the IP or GRH length gives; false: the frame has no such
 * place.
 */
bool craft_seal(uint8_t *frame, uint32_t len);

/* ICRC of the packet whose IP or GRH header is at l3 and whose ICRC field is at icrc. */
uint32_t craft_icrc(enum urxe_net net, const uint8_t *l3, const uint8_t *icrc);

/* CRC-32 of IEEE 802.3, as in zlib. */
uint32_t craft_crc32(const uint8_t *data, size_t length);

void craft_put16(uint8_t *at, uint16_t value);
void craft_put32(uint8_t *at, uint32_t value);
uint16_t craft_get16(const uint8_t *at);

/* The addresses of nodes: 10.0.0.id, 2001:db8::id, fe80::id. */
struct urxe_gid craft_gid(enum urxe_net net, uint8_t id);

#endif
