/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/recv_queue.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/check/check.h"
#include "sim/world.h"

static uint32_t get_slot_size(const struct recv_queue *recv_queue)
{
	return LAYOUT_ROOM(recv_queue->host->world->size + URXE_GRH_LEN);
}

struct recv_queue *recv_queue_plan(struct simhost *host, bool shared, uint32_t depth)
{
	struct recv_queue *recv_queue = sim_calloc(1, sizeof(*recv_queue));

	*recv_queue = (struct recv_queue){
		.host = host,
		.depth = depth,
		.room = depth,
		.shared = shared,
		.refills_in_callback = rand_chance(&host->world->rand, 0.5),
	};
	recv_queue->base = simhost_alloc(host, (uint64_t)depth * get_slot_size(recv_queue));
	host->recv_queue = sim_realloc(host->recv_queue,
				       (host->n_recv_queues + 1) * sizeof(*host->recv_queue));
	host->recv_queue[host->n_recv_queues++] = recv_queue;
	return recv_queue;
}

void recv_queue_open(struct recv_queue *recv_queue)
{
	const struct urxe_rq_attr attr = {
		.ctx = &recv_queue->host->recv_queue[0], /* the first one of its host */
		.pd = SIMHOST_PD,
		.max_wr = recv_queue->depth,
		.max_sge = LAYOUT_MAX_SEGS,
	};

	if (recv_queue->shared)
		sim_require(urxe_srq_create(recv_queue->host->dev, &attr, &recv_queue->rq) == 0);
}

void recv_queue_free(struct recv_queue *recv_queue)
{
	free(recv_queue);
}

/* Returns a slot whose buffer is not posted; -1: all are posted. With an SRQ the buffers come back
 * in any order. */
static int find_free_slot(const struct recv_queue *recv_queue)
{
	for (uint32_t i = 0; i < recv_queue->depth; i++)
		if (!recv_queue->out[i])
			return (int)i;
	return -1;
}

uint32_t recv_queue_outstanding(const struct recv_queue *recv_queue)
{
	return (uint32_t)recv_queue->posted - urxe_rq_retired(recv_queue->rq);
}

static bool post_slot(struct recv_queue *recv_queue, int slot)
{
	struct world *world = recv_queue->host->world;
	struct layout *layout = &recv_queue->layout[slot];
	struct urxe_seg segs[LAYOUT_MAX_SEGS];
	struct urxe_recv_wr wr = {.wr_id = recv_queue->posted, .segs = segs};
	const uint32_t outstanding = recv_queue_outstanding(recv_queue);
	int rc;

	layout_make(layout, &world->rand,
		    recv_queue->base + (uint64_t)slot * get_slot_size(recv_queue),
		    world->size + URXE_GRH_LEN, LAYOUT_MAX_SEGS);
	layout_paint_gaps(layout, recv_queue->host->mem);
	wr.n_segs = layout->n;
	for (uint32_t i = 0; i < layout->n; i++)
		segs[i] = simhost_seg(recv_queue->host, layout->offset[i], layout->length[i]);
	rc = urxe_post_recv(recv_queue->rq, &wr);
	check_post_recv(recv_queue, outstanding, rc);
	if (rc)
		return false;
	recv_queue->wr_id[slot] = recv_queue->posted++;
	recv_queue->out[slot] = true;
	world->activity++;
	return true;
}

void recv_queue_post(struct recv_queue *recv_queue, uint32_t n)
{
	for (; n && !recv_queue->stopped; n--) {
		int slot = find_free_slot(recv_queue);

		if (slot < 0 || !post_slot(recv_queue, slot))
			return;
	}
}

void recv_queue_set_limit(struct recv_queue *recv_queue, uint32_t limit)
{
	const int rc = urxe_srq_set_limit(recv_queue->rq, limit);

	check_srq_limit(recv_queue, limit, rc);
	if (rc)
		return;
	recv_queue->limit = limit;
	recv_queue->limit_from = urxe_rq_retired(recv_queue->rq);
}

void recv_queue_arm(struct recv_queue *recv_queue)
{
	struct rand *r = &recv_queue->host->world->event_rand;

	if (!recv_queue->shared || recv_queue->limit || rand_chance(r, 0.5))
		return;
	recv_queue_set_limit(recv_queue, rand_in(r, 1, recv_queue->room));
}

const struct layout *recv_queue_take(struct recv_queue *recv_queue, uint64_t wr_id)
{
	for (uint32_t i = 0; i < recv_queue->depth; i++) {
		if (!recv_queue->out[i] || recv_queue->wr_id[i] != wr_id)
			continue;
		/* The receive queue of one QP is first in, first out (IBA 10.8.3.1). */
		if (!recv_queue->shared && wr_id != recv_queue->consumed) {
			world_fail(recv_queue->host->world,
				   "receive %" PRIu64 " completed before %" PRIu64, wr_id,
				   recv_queue->consumed);
			return NULL;
		}
		recv_queue->out[i] = false;
		recv_queue->consumed++;
		if (!layout_gaps_intact(&recv_queue->layout[i], recv_queue->host->mem)) {
			world_fail(recv_queue->host->world,
				   "receive %" PRIu64 " wrote outside its segments", wr_id);
			return NULL;
		}
		return &recv_queue->layout[i];
	}
	world_fail(recv_queue->host->world,
		   "receive completion for %" PRIu64 ", which is not outstanding", wr_id);
	return NULL;
}

/* --- Resizes. */

void recv_queues_plan_resizes(struct world *world)
{
	struct rand *r = &world->resize_rand;

	*r = (struct rand){world->scenario.seed ^ 0x726573697a65};
	for (uint64_t i = 0; i < world->scenario.resizes; i++) {
		const struct simhost *host = &world->host[rand_below(r, world->n_hosts)];

		if (host->n_recv_queues && host->recv_queue[0]->shared)
			host->recv_queue[0]->resizes++;
	}
}

static void resize(struct recv_queue *recv_queue, uint32_t room)
{
	const int rc = urxe_srq_resize(recv_queue->rq, room);

	world_note(recv_queue->host->world, "host %u resizes its SRQ to %u: %d",
		   recv_queue->host->id, room, rc);
	check_srq_resize(recv_queue, room, rc);
	if (!rc)
		recv_queue->room = room;
}

void recv_queue_turn(struct recv_queue *recv_queue)
{
	struct rand *r = &recv_queue->host->world->resize_rand;

	if (!recv_queue->resizes || rand_chance(r, 0.5))
		return;
	recv_queue->resizes--;
	resize(recv_queue, rand_below(r, 2 * RECV_QUEUE_DEPTH));
	if (rand_chance(r, 0.5))
		recv_queue_set_limit(recv_queue, rand_below(r, recv_queue->room + 2));
}
