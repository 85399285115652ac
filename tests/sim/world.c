/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "check.h"
#include "require.h"
#include "trace.h"

#define SECOND   1000000000ull
#define MEM_SIZE (12u << 20)
/* No world takes longer, however bad its cable. */
#define LIMIT (1000 * SECOND)
/* Turns of the application in which nothing is posted and nothing moves. */
#define MAX_STANDSTILL 64

void world_fail(struct world *world, const char *format, ...)
{
	va_list args;

	if (world->failure[0])
		return;
	va_start(args, format);
	vsnprintf(world->failure, sizeof(world->failure), format, args);
	va_end(args);
}

void world_note(struct world *world, const char *format, ...)
{
	FILE *text = world->options.trace ? world->options.trace->text : NULL;
	va_list args;

	if (!text)
		return;
	fprintf(text, "%12" PRIu64 " ", world->pair->now);
	va_start(args, format);
	vfprintf(text, format, args);
	va_end(args);
	fputc('\n', text);
}

uint32_t world_alloc(struct world *world, unsigned side, uint32_t length)
{
	uint32_t at = world->mem_used[side];

	world->mem_used[side] += (length + 7) & ~7u;
	require(world->mem_used[side] <= MEM_SIZE);
	return at;
}

struct conn *world_conn(struct world *world, unsigned side, uint32_t qpn)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		if (world->conn[i].end[side].qpn == qpn)
			return &world->conn[i];
	return NULL;
}

static void set_faults(struct world *world)
{
	double loss = world->options.loss;
	double disorder;

	world->wild = loss > 0 && rand_chance(&world->rand, 0.7);
	disorder = world->wild ? loss : 0;
	for (unsigned side = 0; side < 2; side++) {
		struct link *link = &world->pair->link[side];

		link->faults = (struct link_faults){
			.drop = loss,
			.duplicate = disorder,
			.reorder = disorder,
			.corrupt = loss / 4,
			.max_losses = 2,
		};
		link->delay_ns = rand_in(&world->rand, 100, 20000);
		link->reorder_ns = rand_in(&world->rand, 1, 100000);
	}
}

/* Half of the worlds have ports that push back: requests wait while acknowledgements come in. */
static void set_speed(struct world *world)
{
	if (rand_chance(&world->rand, 0.5))
		return;
	world->pair->tx_max = rand_in(&world->rand, 1, 8);
	world->pair->tx_ns = rand_in(&world->rand, 20, 200);
}

static struct conn_attr random_conn(struct rand *r)
{
	static const uint8_t types[] = {URXE_QPT_RC, URXE_QPT_RC, URXE_QPT_RC, URXE_QPT_UC,
					URXE_QPT_UD};
	struct conn_attr attr = conn_default(types[rand_below(r, sizeof(types))]);

	attr.net = (uint8_t)rand_below(r, 3);
	attr.path_mtu = (uint8_t)rand_in(r, URXE_MTU_256, URXE_MTU_4096);
	attr.timeout = (uint8_t)rand_in(r, 6, 10);       /* 0.26 to 4.2 ms */
	attr.min_rnr_timer = (uint8_t)rand_in(r, 1, 12); /* 0.01 to 0.64 ms */
	attr.rd_atomic = (uint8_t)rand_in(r, 1, 8);
	attr.sq_sig_all = rand_chance(r, 0.5);
	/* Half of them wrap around soon. */
	for (unsigned side = 0; side < 2; side++)
		attr.psn[side] = (0xffffff - rand_below(r, 40) +
				  (rand_chance(r, 0.5) ? rand_below(r, 1 << 24) : 0)) &
				 0xffffff;
	attr.cap = (struct urxe_qp_cap){
		.max_send_wr = rand_in(r, 1, STREAM_WINDOW),
		.max_recv_wr = INBOX_DEPTH,
		.max_send_sge = LAYOUT_MAX_SEGS,
		.max_recv_sge = LAYOUT_MAX_SEGS,
		.max_inline = rand_below(r, 257),
	};
	return attr;
}

static void create_conn(struct world *world, struct conn *conn, const bool shared[2])
{
	conn->attr = random_conn(&world->rand);
	for (unsigned side = 0; side < 2; side++) {
		struct inbox *inbox = &world->inbox[side][world->n_inboxes[side]];

		if (shared[side] && world->n_inboxes[side] == 0) {
			inbox_init(inbox, world, side, NULL);
			world->n_inboxes[side] = 1;
		}
		if (shared[side])
			conn->attr.srq[side] = world->inbox[side][0].rq;
		conn_create(world->pair, &conn->attr, side, &conn->end[side]);
		conn->inbox[side] = &world->inbox[side][0];
		if (!shared[side]) {
			conn->inbox[side] = inbox;
			inbox_init(inbox, world, side, conn->end[side].rq);
			conn->end[side].queue.refill = inbox->queue.refill;
			conn->end[side].queue.arg = inbox;
			world->n_inboxes[side]++;
		}
	}
	for (unsigned side = 0; side < 2; side++) {
		conn_bring_up(world->pair, &conn->attr, side, &conn->end[side], &conn->end[!side]);
		stream_init(&conn->stream[side], world, conn, side);
	}
}

static void world_create(struct world *world, const struct options *options)
{
	struct pair_attr attr = {.seed = options->seed, .mem_size = MEM_SIZE};
	bool shared[2];

	*world = (struct world){.options = *options, .rand = {options->seed}};
	attr.max_packets = rand_chance(&world->rand, 0.5) ? 0 : rand_in(&world->rand, 1, 128);
	world->pair = pair_create(&attr);
	world->pair->trace = options->trace;
	set_faults(world);
	set_speed(world);
	for (unsigned side = 0; side < 2; side++) {
		shared[side] = rand_chance(&world->rand, 0.3);
		world->shared_word[side] = world_alloc(world, side, 8);
	}
	world->n_conns = rand_in(&world->rand, 1, WORLD_MAX_CONNS);
	for (uint32_t i = 0; i < world->n_conns; i++)
		create_conn(world, &world->conn[i], shared);
}

static void world_destroy(struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++)
			stream_free(&world->conn[i].stream[side]);
	pair_destroy(world->pair);
}

static void drain(struct world *world)
{
	struct urxe_wc wc;

	for (unsigned side = 0; side < 2; side++) {
		while (!world->failure[0] && node_poll(&world->pair->node[side]->recv_cq, &wc)) {
			check_delivery(world, side, &wc);
			world->activity++;
		}
		while (!world->failure[0] && node_poll(&world->pair->node[side]->send_cq, &wc)) {
			check_completion(world, side, &wc);
			world->activity++;
		}
	}
}

/* One turn of the applications on both hosts. */
static void act(struct world *world)
{
	drain(world);
	for (unsigned side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < world->n_inboxes[side]; i++)
			inbox_post(&world->inbox[side][i], rand_below(&world->rand, 4));
		for (uint32_t i = 0; i < world->n_conns; i++)
			stream_post(&world->conn[i].stream[side]);
	}
}

static bool done(const struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++)
			if (!stream_done(&world->conn[i].stream[side]))
				return false;
	return true;
}

static void live(struct world *world)
{
	unsigned standstill = 0;

	while (!world->failure[0] && !done(world)) {
		uint64_t before = world->activity;
		uint64_t until = world->pair->now + rand_in(&world->rand, 1, 200000);
		enum pair_result result;

		act(world);
		result = pair_run(world->pair, until);
		drain(world);
		if (result == PAIR_STUCK)
			world_fail(world, "a deadline stays due although nothing comes of it");
		standstill = result == PAIR_IDLE && world->activity == before ? standstill + 1 : 0;
		if (standstill == MAX_STANDSTILL)
			world_fail(world, "everybody waits forever");
		if (world->pair->now > LIMIT)
			world_fail(world, "not done after %llu s", LIMIT / SECOND);
		if (world->pair->now < until)
			world->pair->now = until;
	}
}

bool world_run(struct world *world, const struct options *options)
{
	world_create(world, options);
	live(world);
	if (!world->failure[0])
		check_quiet(world);
	if (!world->failure[0])
		check_memory(world);
	world_destroy(world);
	return !world->failure[0];
}
