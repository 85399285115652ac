/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "inbox.h"

#include <inttypes.h>

#include "require.h"
#include "world.h"

static void on_refill(struct node_queue *queue)
{
	struct inbox *inbox = queue->arg;

	if (inbox->lazy)
		inbox_post(inbox, 2);
}

void inbox_init(struct inbox *inbox, struct world *world, unsigned side, struct urxe_rq *rq)
{
	*inbox = (struct inbox){
		.world = world,
		.node = world->pair->node[side],
		.rq = rq,
		.shared = !rq,
		.lazy = rand_chance(&world->rand, 0.5),
		.base = world_alloc(world, side, INBOX_DEPTH * (LAYOUT_ROOM + URXE_GRH_LEN)),
	};
	inbox->queue.node = inbox->node;
	inbox->queue.refill = on_refill;
	inbox->queue.arg = inbox;
	if (inbox->shared) {
		const struct urxe_rq_attr attr = {
			.ctx = &inbox->queue,
			.pd = NODE_PD,
			.max_wr = INBOX_DEPTH,
			.max_sge = LAYOUT_MAX_SEGS,
		};

		require(urxe_srq_create(inbox->node->dev, &attr, &inbox->rq) == 0);
	}
}

/* A buffer that is not in use. With a SRQ they do not come back in order. */
static int free_slot(const struct inbox *inbox)
{
	for (int i = 0; i < INBOX_DEPTH; i++)
		if (!inbox->out[i])
			return i;
	return -1;
}

static bool post_one(struct inbox *inbox, int slot)
{
	struct layout *layout = &inbox->layout[slot];
	struct urxe_seg segs[LAYOUT_MAX_SEGS];
	struct urxe_recv_wr wr = {.wr_id = inbox->posted, .segs = segs};

	layout_make(layout, &inbox->world->rand,
		    inbox->base + (uint32_t)slot * (LAYOUT_ROOM + URXE_GRH_LEN),
		    CONTENT_MAX + URXE_GRH_LEN, LAYOUT_MAX_SEGS);
	layout_paint_gaps(layout, inbox->node->mem);
	wr.n_segs = layout->n;
	for (uint32_t i = 0; i < layout->n; i++)
		segs[i] = node_seg(inbox->node, layout->offset[i], layout->length[i]);
	if (urxe_post_recv(inbox->rq, &wr))
		return false;
	inbox->wr_id[slot] = inbox->posted++;
	inbox->out[slot] = true;
	inbox->world->activity++;
	return true;
}

void inbox_post(struct inbox *inbox, uint32_t n)
{
	for (; n; n--) {
		int slot = free_slot(inbox);

		if (slot < 0)
			return;
		if (!post_one(inbox, slot)) {
			world_fail(inbox->world, "post_recv refused with %" PRIu64 " outstanding",
				   inbox->posted - inbox->consumed);
			return;
		}
	}
}

const struct layout *inbox_take(struct inbox *inbox, uint64_t wr_id)
{
	for (int i = 0; i < INBOX_DEPTH; i++) {
		if (!inbox->out[i] || inbox->wr_id[i] != wr_id)
			continue;
		/* A queue of the QP's own is first in, first out (IBA 10.8.3.1). */
		if (!inbox->shared && wr_id != inbox->consumed) {
			world_fail(inbox->world, "receive %" PRIu64 " completed before %" PRIu64,
				   wr_id, inbox->consumed);
			return NULL;
		}
		inbox->out[i] = false;
		inbox->consumed++;
		if (!layout_gaps_intact(&inbox->layout[i], inbox->node->mem)) {
			world_fail(inbox->world, "receive %" PRIu64 " wrote outside its segments",
				   wr_id);
			return NULL;
		}
		return &inbox->layout[i];
	}
	world_fail(inbox->world, "receive completion for %" PRIu64 ", which is not outstanding",
		   wr_id);
	return NULL;
}
