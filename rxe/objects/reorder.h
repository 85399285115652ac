/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request packets with later PSNs than the expected one, kept until the missing packets arrive.
 * Their payload is not written to the application's memory before. responder/gap.c is the caller.
 */
#ifndef URXE_REORDER_H
#define URXE_REORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/packet.h>

#include "objects/device.h"

/* A responder keeps packets up to this many PSNs ahead of the expected one. */
#define REORDER_WINDOW 256

struct reorder_packet {
	TAILQ_ENTRY(reorder_packet) link;
	uint64_t arrival;
	struct urxe_packet packet; /* only its fields and payload; l3, bth and icrc are NULL */
	uint8_t payload[];
};

void reorder_pool_init(struct reorder_pool *pool);
void reorder_pool_free(struct reorder_pool *pool);

/*
 * Keeps a copy of a packet that is `ahead` PSNs behind the expected one. Of two packets with one
 * PSN the first stays. False: the packet is too far ahead, or the device has no buffer left.
 */
bool reorder_keep(struct urxe_dev *dev, struct reorder_list *list, const struct urxe_packet *p,
		  uint32_t ahead);
/* Removes the packet with this PSN and frees all earlier ones; NULL: the packet is not kept. */
struct reorder_packet *reorder_take(struct urxe_dev *dev, struct reorder_list *list, uint32_t psn);
void reorder_give_back(struct urxe_dev *dev, struct reorder_packet *kept);
void reorder_clear(struct urxe_dev *dev, struct reorder_list *list);

#endif
