/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Received packets whose payload lies elsewhere, in memory that may change at any time. It is read
 * once: it is copied to a buffer that stays in the cache, with its CRC, and what is executed is
 * that copy.
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

/* Of a device: a packet in one piece. */
struct lent_buffer {
	uint8_t bytes[LENT_LINE + LENT_HEADERS + URXE_LENT_MAX + URXE_ICRC_LEN];
};

/*
 * Lays out the frame in one piece, without its payload; the next call uses the same buffer. False:
 * it has not the shape of a packet.
 */
bool lent_lay_out(struct urxe_dev *dev, const struct urxe_frame *frame, struct urxe_frame *whole);
/*
 * Brings the payload to its place, once the packet's headers are parsed; false where they mean
 * another place, where the payload is not there, or the ICRC is wrong.
 */
bool lent_take(struct urxe_dev *dev, const struct urxe_frame *frame, const struct urxe_packet *p);

/*
 * Of a trusted payload nobody knows what it is to be: its sender leaves it as it is, or recalls it
 * before. So whoever has read it looks for that.
 */

/*
 * Several packets may go together in one such frame, which no other host ever sees. How many there
 * are behind the first its BTH tells where it has bits in reserve: by its length alone a peer that
 * was told another path MTU would count others, and take later messages for what it has already.
 */
#define LENT_BEHIND 0x7fu /* of the byte with AckReq */

static_assert(URXE_LENT_MAX / 256 - 1 <= LENT_BEHIND, "of the least MTU, too");

static inline uint32_t lent_packets(const struct urxe_packet *p)
{
	return (p->bth[8] & LENT_BEHIND) + 1;
}

/* As the first half of lent_take: whether the headers are right. */
bool lent_headers_ok(struct urxe_dev *dev, const struct urxe_frame *frame,
		     const struct urxe_packet *p);
/* And the second: false where the payload is not there, or recalled. */
bool lent_take_trusted(struct urxe_dev *dev, const struct urxe_frame *frame);
/* Whether what was read of it before is what was sent. */
bool lent_stands(const struct urxe_frame *frame);

#endif
