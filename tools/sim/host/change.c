/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/change.h"

#include "sim/alloc.h"
#include "sim/check/check.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

#define RETRIES_MAX 7

void change_plan(struct world *world)
{
	struct rand *r = &world->change_rand;

	*r = (struct rand){world->scenario.seed ^ 0x6368616e6765};
	for (uint64_t i = 0; i < world->scenario.changes && world->n_conns; i++) {
		struct simconn *conn = &world->conn[rand_below(r, world->n_conns)];
		unsigned side = rand_below(r, 2);

		if (!conn->failure.kind)
			conn->end[side].change.times++;
	}
}

static void modify(struct endpoint *end, uint32_t mask)
{
	world_note(end->host->world, "host %u qp %06x changes attributes %x", end->host->id,
		   end->qpn, mask);
	sim_require(urxe_qp_modify(end->qp, end->host->world->now, &end->change.attr, mask) == 0);
}

static void change_rnr_timer(struct endpoint *end)
{
	end->change.attr.min_rnr_timer = (uint8_t)rand_in(&end->host->world->change_rand, 1, 12);
	modify(end, URXE_QP_MIN_RNR_TIMER);
}

static void set_rights(struct endpoint *end, uint32_t access)
{
	end->change.withdrawn = !access;
	end->change.attr.access = access;
	modify(end, URXE_QP_ACCESS_FLAGS);
}

/* Withdraws the peer's rights while it has no request outstanding. Repeated packets of completed
 * requests may still arrive, but the peer does not need the answers. */
static void withdraw_rights(struct endpoint *end)
{
	const struct stream *stream = &end->conn->stream[!end->side];

	if (stream->posted == stream->completed)
		set_rights(end, 0);
}

/* Changes timeout and retries, never to less than the first values, which the scenario's network
 * and pauses need. */
static void change_retries(struct endpoint *end)
{
	const struct simconn_attr *first = &end->conn->attr;
	struct rand *r = &end->host->world->change_rand;
	struct urxe_qp_attr *attr = &end->change.attr;

	if (first->timeout)
		attr->timeout = (uint8_t)(first->timeout + rand_below(r, 3));
	attr->retry_cnt = (uint8_t)rand_in(r, first->retry_cnt, RETRIES_MAX);
	modify(end, URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT);
}

static void register_again(struct simhost *host)
{
	const int rc = simhost_register_again(host);

	world_note(host->world, "host %u registers its memory again: %d", host->id, rc);
	check_rereg(host, rc);
}

static void change(struct endpoint *end)
{
	const unsigned choice = rand_below(&end->host->world->change_rand, 3);

	end->change.times--;
	if (end->conn->attr.type != URXE_QPT_RC || choice == 0)
		register_again(end->host);
	else if (end->drain.state == DRAIN_ENDED)
		change_retries(end);
	else if (choice == 1)
		change_rnr_timer(end);
	else
		withdraw_rights(end);
}

void change_turn(struct endpoint *end)
{
	struct world *world = end->host->world;

	if (world->scenario.changes)
		check_attributes(end);
	if (!(end->change.times || end->change.withdrawn) || rand_chance(&world->change_rand, 0.5))
		return;
	if (end->change.withdrawn)
		set_rights(end, SIMHOST_ACCESS);
	else
		change(end);
}
