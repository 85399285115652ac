/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Received packets whose payload lies elsewhere, in memory that may change at any time. Their
 * headers are checked by themselves; then the payload is copied, either straight to where the
 * message is to be, or to a buffer that stays in the cache.
 */
#ifndef URXE_LENT_H
#define URXE_LENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

#define LENT_LINE    64u
#define LENT_HEADERS (2 * LENT_LINE) /* a multiple, so that a payload begins on a cache line */

/* Of a device: a packet in one piece, and the CRC of its headers. */
struct lent_buffer {
	uint8_t bytes[LENT_LINE + LENT_HEADERS + URXE_LENT_MAX + URXE_ICRC_LEN];
	uint32_t headers_crc;
};

/*
 * Lays out the frame in one piece, without its payload; the next call uses the same buffer. False:
 * it has not the shape of a packet.
 */
bool lent_lay_out(struct urxe_dev *dev, const struct urxe_frame *frame, struct urxe_frame *whole);
/* Whether the headers are what was sent, once they are parsed, and mean that payload. */
bool lent_headers_ok(struct urxe_dev *dev, const struct urxe_frame *frame,
		     const struct urxe_packet *p);
/*
 * Of a packet with such headers, p->lent's payload: to the packet's own place, in the buffer. False
 * where it is not what was sent: it is not there, its ICRC is wrong, or it was recalled.
 */
bool lent_take(struct urxe_dev *dev, const struct urxe_packet *p);
/*
 * The same, to payload_len bytes of the program. They may be lost half-way, as any message may be
 * whose connection breaks; but the last of them, by which programs know that all are there, are
 * written once all are right.
 */
bool lent_place(struct urxe_dev *dev, const struct urxe_packet *p, uint8_t *to);
/* Of a trusted payload that was read in another way: whether it was what was sent. */
bool lent_stands(const struct urxe_frame *frame);
/* What is said of one that is not. */
enum urxe_drop lent_drop(const struct urxe_frame *frame);

/*
 * Several packets may go together in one trusted frame, which no other host ever sees. How many
 * there are behind the first its BTH tells where it has bits in reserve: by its length alone a peer
 * that was told another path MTU would count others, and take later messages for what it has
 * already.
 */
#define LENT_BEHIND 0x7fu /* of the byte with AckReq */

static_assert(URXE_LENT_MAX / 256 - 1 <= LENT_BEHIND, "of the least MTU, too");

static inline uint32_t lent_packets(const struct urxe_packet *p)
{
	return p->lent && p->lent->trusted ? (p->bth[8] & LENT_BEHIND) + 1 : 1;
}

#endif
