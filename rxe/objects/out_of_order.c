/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/out_of_order.h"

#include <stdlib.h>
#include <string.h>

#include <rxe/psn.h>

/* Most packets that all QPs of a device keep together: 16 MiB with 4 KiB payloads. */
#define OUT_OF_ORDER_MAX 4096

void out_of_order_pool_init(struct out_of_order_pool *pool)
{
	TAILQ_INIT(&pool->free);
	pool->n = 0;
}

void out_of_order_pool_free(struct out_of_order_pool *pool)
{
	struct out_of_order_packet *kept;

	while ((kept = TAILQ_FIRST(&pool->free))) {
		TAILQ_REMOVE(&pool->free, kept, link);
		free(kept);
	}
}

/* A buffer for a packet; NULL: OUT_OF_ORDER_MAX packets are kept, or no memory is left. Buffers are
 * reused, so malloc is called only when more packets are kept than ever before. */
static struct out_of_order_packet *take_buffer(struct urxe_dev *dev)
{
	struct out_of_order_pool *pool = &dev->out_of_order;
	struct out_of_order_packet *kept = TAILQ_FIRST(&pool->free);

	if (kept) {
		TAILQ_REMOVE(&pool->free, kept, link);
		return kept;
	}
	if (pool->n == OUT_OF_ORDER_MAX)
		return NULL;
	kept = malloc(sizeof(*kept) + dev->attr.mtu);
	if (kept)
		pool->n++;
	return kept;
}

static void copy_packet(struct out_of_order_packet *kept, const struct urxe_packet *p, uint64_t now)
{
	kept->arrival = now;
	kept->packet = *p;
	kept->packet.l3 = kept->packet.bth = kept->packet.icrc = NULL;
	kept->packet.payload = kept->payload;
	memcpy(kept->payload, p->payload, p->payload_len);
}

bool out_of_order_keep(struct urxe_dev *dev, struct out_of_order_list *list,
		       const struct urxe_packet *p, uint32_t ahead)
{
	struct out_of_order_packet *before = TAILQ_LAST(list, out_of_order_list), *kept;

	if (ahead >= OUT_OF_ORDER_WINDOW || p->payload_len > dev->attr.mtu)
		return false;
	while (before && urxe_psn_diff(before->packet.psn, p->psn) > 0)
		before = TAILQ_PREV(before, out_of_order_list, link);
	if (before && before->packet.psn == p->psn)
		return true;
	kept = take_buffer(dev);
	if (!kept)
		return false;
	copy_packet(kept, p, dev->now);
	if (before)
		TAILQ_INSERT_AFTER(list, before, kept, link);
	else
		TAILQ_INSERT_HEAD(list, kept, link);
	return true;
}

struct out_of_order_packet *out_of_order_take(struct urxe_dev *dev, struct out_of_order_list *list,
					      uint32_t psn)
{
	struct out_of_order_packet *kept;

	while ((kept = TAILQ_FIRST(list)) && urxe_psn_diff(kept->packet.psn, psn) <= 0) {
		TAILQ_REMOVE(list, kept, link);
		if (kept->packet.psn == psn)
			return kept;
		out_of_order_give_back(dev, kept);
	}
	return NULL;
}

void out_of_order_give_back(struct urxe_dev *dev, struct out_of_order_packet *kept)
{
	TAILQ_INSERT_HEAD(&dev->out_of_order.free, kept, link);
}

void out_of_order_clear(struct urxe_dev *dev, struct out_of_order_list *list)
{
	TAILQ_CONCAT(&dev->out_of_order.free, list, link);
}
