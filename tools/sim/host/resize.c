/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/resize.h"

#include "sim/check/check.h"
#include "sim/host/recv_queue.h"
#include "sim/world.h"

void resize_plan(struct world *world)
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

void resize_turn(struct recv_queue *recv_queue)
{
	struct rand *r = &recv_queue->host->world->resize_rand;

	if (!recv_queue->resizes || rand_chance(r, 0.5))
		return;
	recv_queue->resizes--;
	resize(recv_queue, rand_below(r, 2 * RECV_QUEUE_DEPTH));
	if (rand_chance(r, 0.5))
		recv_queue_set_limit(recv_queue, rand_below(r, recv_queue->room + 2));
}
