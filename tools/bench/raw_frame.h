/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frames of urxe bench --bare: MACs, EtherType, mark, type, number, zeros. The EtherType is
 * that of RoCEv1, because some ports receive RoCE only. The mark is at the place of a GRH's IP
 * version, and is not version 6, so that engines drop the frame.
 */
#ifndef URXE_BENCH_RAW_FRAME_H
#define URXE_BENCH_RAW_FRAME_H

#include <stdbool.h>
#include <stdint.h>

struct netdev_frame;

enum raw_frame_type { RAW_QUESTION = 1, RAW_ANSWER, RAW_PAYLOAD, RAW_CREDIT };

/* Ethernet header, GRH, BTH, payload with its pad, and ICRC of a SEND of 2 bytes. */
#define RAW_FRAME_LEN (14 + 40 + 12 + 4 + 4)

/* Writes the first RAW_FRAME_LEN bytes of a frame. */
void raw_frame_write(uint8_t bytes[RAW_FRAME_LEN], const uint8_t to[6], const uint8_t from[6],
		     enum raw_frame_type type, uint32_t number);
/* Is it a frame of that type to `to`, or to any station if `to` is NULL? */
bool raw_frame_is(const struct netdev_frame *frame, enum raw_frame_type type, const uint8_t *to);
uint32_t raw_frame_number(const struct netdev_frame *frame);
/* The sender's MAC. */
const uint8_t *raw_frame_source(const struct netdev_frame *frame);

#endif
