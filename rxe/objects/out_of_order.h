/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps copies of request packets that cannot be executed yet: those behind a missing one, and an
 * expected one that has to wait (RESP_POSTPONED). Until their execution their payload is not
 * written to the application's memory. responder/psn_gap.c is the caller.
 */
#ifndef URXE_OBJECTS_OUT_OF_ORDER_H
#define URXE_OBJECTS_OUT_OF_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/packet.h>

#include "objects/device.h"

/* A responder keeps packets less than this many PSNs ahead of the expected one. */
#define OUT_OF_ORDER_WINDOW 256

struct out_of_order_packet {
	TAILQ_ENTRY(out_of_order_packet) link;
	uint64_t arrival;
	struct urxe_packet packet; /* only its fields and payload; l3, bth and icrc are NULL */
	uint8_t payload[];
};

void out_of_order_pool_init(struct out_of_order_pool *pool);
void out_of_order_pool_free(struct out_of_order_pool *pool);

/*
 * Keeps a copy of a packet that is `ahead` PSNs after the expected one. Of two packets with one
 * PSN the first stays. False: the packet is too far ahead, its payload is longer than the device's
 * MTU, or the device has no buffer left.
 */
bool out_of_order_keep(struct urxe_dev *dev, struct out_of_order_list *list,
		       const struct urxe_packet *p, uint32_t ahead);
/* Removes the packet with this PSN from the list, and frees all earlier ones. The caller passes the
 * packet to out_of_order_give_back. NULL: the packet is not kept. */
struct out_of_order_packet *out_of_order_take(struct urxe_dev *dev, struct out_of_order_list *list,
					      uint32_t psn);
void out_of_order_give_back(struct urxe_dev *dev, struct out_of_order_packet *kept);
void out_of_order_clear(struct urxe_dev *dev, struct out_of_order_list *list);

#endif
