/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/reorder.h"

#include <stdlib.h>
#include <string.h>

#include <rxe/psn.h>

/* Packets that all QPs of a device may keep at a time: 16 MiB with 4 KiB payloads. */
#define REORDER_MAX 4096

void reorder_pool_init(struct reorder_pool *pool)
{
	TAILQ_INIT(&pool->free);
	pool->n = 0;
}

void reorder_pool_free(struct reorder_pool *pool)
{
	struct reorder_packet *kept;

	while ((kept = TAILQ_FIRST(&pool->free))) {
		TAILQ_REMOVE(&pool->free, kept, link);
		free(kept);
	}
}

/* Buffers are reused, so malloc is called only when more packets are kept than ever before. */
static struct reorder_packet *take_buffer(struct urxe_dev *dev)
{
	struct reorder_pool *pool = &dev->reorder;
	struct reorder_packet *kept = TAILQ_FIRST(&pool->free);

	if (kept) {
		TAILQ_REMOVE(&pool->free, kept, link);
		return kept;
	}
	if (pool->n == REORDER_MAX)
		return NULL;
	kept = malloc(sizeof(*kept) + dev->attr.mtu);
	if (kept)
		pool->n++;
	return kept;
}

static void copy_packet(struct reorder_packet *kept, const struct urxe_packet *p, uint64_t now)
{
	kept->arrival = now;
	kept->packet = *p;
	kept->packet.l3 = kept->packet.bth = kept->packet.icrc = NULL;
	kept->packet.payload = kept->payload;
	memcpy(kept->payload, p->payload, p->payload_len);
}

bool reorder_keep(struct urxe_dev *dev, struct reorder_list *list, const struct urxe_packet *p,
		  uint32_t ahead)
{
	struct reorder_packet *before = TAILQ_LAST(list, reorder_list), *kept;

	if (ahead >= REORDER_WINDOW || p->payload_len > dev->attr.mtu)
		return false;
	while (before && urxe_psn_diff(before->packet.psn, p->psn) > 0)
		before = TAILQ_PREV(before, reorder_list, link);
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

struct reorder_packet *reorder_take(struct urxe_dev *dev, struct reorder_list *list, uint32_t psn)
{
	struct reorder_packet *kept;

	while ((kept = TAILQ_FIRST(list)) && urxe_psn_diff(kept->packet.psn, psn) <= 0) {
		TAILQ_REMOVE(list, kept, link);
		if (kept->packet.psn == psn)
			return kept;
		reorder_give_back(dev, kept);
	}
	return NULL;
}

void reorder_give_back(struct urxe_dev *dev, struct reorder_packet *kept)
{
	TAILQ_INSERT_HEAD(&dev->reorder.free, kept, link);
}

void reorder_clear(struct urxe_dev *dev, struct reorder_list *list)
{
	TAILQ_CONCAT(&dev->reorder.free, list, link);
}
