/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/recv_queue.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/world.h"

static uint32_t slot_size(const struct recv_queue *inbox)
{
	return LAYOUT_ROOM(inbox->host->world->size + URXE_GRH_LEN);
}

struct recv_queue *recv_queue_plan(struct simhost *host, bool shared, uint32_t depth)
{
	struct recv_queue *inbox = sim_calloc(1, sizeof(*inbox));

	*inbox = (struct recv_queue){
		.host = host,
		.depth = depth,
		.shared = shared,
		.lazy = rand_chance(&host->world->rand, 0.5),
	};
	inbox->base = simhost_alloc(host, (uint64_t)depth * slot_size(inbox));
	host->inbox = sim_realloc(host->inbox, (host->n_inboxes + 1) * sizeof(*host->inbox));
	host->inbox[host->n_inboxes++] = inbox;
	return inbox;
}

void recv_queue_open(struct recv_queue *inbox)
{
	const struct urxe_rq_attr attr = {
		.ctx = inbox,
		.pd = SIMHOST_PD,
		.max_wr = inbox->depth,
		.max_sge = LAYOUT_MAX_SEGS,
	};

	if (inbox->shared)
		sim_require(urxe_srq_create(inbox->host->dev, &attr, &inbox->rq) == 0);
}

void recv_queue_free(struct recv_queue *inbox)
{
	free(inbox);
}

/* A buffer that is not in use. With a SRQ they do not come back in order. */
static int free_slot(const struct recv_queue *inbox)
{
	for (uint32_t i = 0; i < inbox->depth; i++)
		if (!inbox->out[i])
			return (int)i;
	return -1;
}

static bool post_one(struct recv_queue *inbox, int slot)
{
	struct world *world = inbox->host->world;
	struct layout *layout = &inbox->layout[slot];
	struct urxe_seg segs[LAYOUT_MAX_SEGS];
	struct urxe_recv_wr wr = {.wr_id = inbox->posted, .segs = segs};

	layout_make(layout, &world->rand, inbox->base + (uint64_t)slot * slot_size(inbox),
		    world->size + URXE_GRH_LEN, LAYOUT_MAX_SEGS);
	layout_paint_gaps(layout, inbox->host->mem);
	wr.n_segs = layout->n;
	for (uint32_t i = 0; i < layout->n; i++)
		segs[i] = simhost_seg(inbox->host, layout->offset[i], layout->length[i]);
	if (urxe_post_recv(inbox->rq, &wr))
		return false;
	inbox->wr_id[slot] = inbox->posted++;
	inbox->out[slot] = true;
	world->activity++;
	return true;
}

void recv_queue_post(struct recv_queue *inbox, uint32_t n)
{
	for (; n; n--) {
		int slot = free_slot(inbox);

		if (slot < 0)
			return;
		if (!post_one(inbox, slot)) {
			world_fail(inbox->host->world,
				   "post_recv refused with %" PRIu64 " outstanding",
				   inbox->posted - inbox->consumed);
			return;
		}
	}
}

const struct layout *recv_queue_take(struct recv_queue *inbox, uint64_t wr_id)
{
	for (uint32_t i = 0; i < inbox->depth; i++) {
		if (!inbox->out[i] || inbox->wr_id[i] != wr_id)
			continue;
		/* A queue of the QP's own is first in, first out (IBA 10.8.3.1). */
		if (!inbox->shared && wr_id != inbox->consumed) {
			world_fail(inbox->host->world,
				   "receive %" PRIu64 " completed before %" PRIu64, wr_id,
				   inbox->consumed);
			return NULL;
		}
		inbox->out[i] = false;
		inbox->consumed++;
		if (!layout_gaps_intact(&inbox->layout[i], inbox->host->mem)) {
			world_fail(inbox->host->world,
				   "receive %" PRIu64 " wrote outside its segments", wr_id);
			return NULL;
		}
		return &inbox->layout[i];
	}
	world_fail(inbox->host->world,
		   "receive completion for %" PRIu64 ", which is not outstanding", wr_id);
	return NULL;
}
