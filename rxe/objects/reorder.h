/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request packets that came before their turn, kept until the gap before them
 * fills. Nothing of them reaches the application's memory until then.
 */
#ifndef URXE_REORDER_H
#define URXE_REORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/packet.h>

#include "objects/device.h"

/* PSNs ahead of the expected one that a responder keeps packets of. */
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
 * Keeps a copy of a packet that came `ahead` PSNs too early; of two with one PSN
 * the first stays. False where it is too far ahead or the device keeps as many as
 * it may.
 */
bool reorder_keep(struct urxe_dev *dev, struct reorder_list *list, const struct urxe_packet *p,
		  uint32_t ahead);
/* Takes out the packet with this PSN, and gives back those before it; NULL: it is not there. */
struct reorder_packet *reorder_take(struct urxe_dev *dev, struct reorder_list *list, uint32_t psn);
void reorder_give_back(struct urxe_dev *dev, struct reorder_packet *kept);
void reorder_clear(struct urxe_dev *dev, struct reorder_list *list);

#endif
