/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/migrate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/announcement.h>
#include <rxe/state.h>

#include "sim/alloc.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/network/address.h"
#include "sim/world.h"

/* The first migration comes within this time, ns. */
#define FIRST_NS 3000000
/* An engine's local ACK timeout is this time << the exponent, ns: three times IBA's 4.096 us. */
#define ACK_TIMEOUT_NS 12288
/* Mean time from a migration with a long pause to the next one, in local ACK timeouts: enough for
 * retransmissions to succeed between them. */
#define GAP_TIMEOUTS 6
/*
 * The share of pauses that are short, their length at most, and the mean time to the next
 * migration, ns. After a short pause, probes and NAKs repair the losses, which takes a retry or
 * two.
 */
#define SHORT_PAUSES   0.7
#define SHORT_PAUSE_NS 200000
#define SHORT_GAP_NS   1000000
/* The exponent of the timeout that stands for connections without one. */
#define DEFAULT_TIMEOUT 10
/* Tags of the completion queues. */
enum { TAG_SEND_CQ, TAG_RECV_CQ };

/* --- Saving. */

/* The tags of multicast members' QPs follow those of the connections' QPs. */
static uint64_t get_qp_tag(const struct simhost *host, void *ctx)
{
	const struct member *member = member_of_context(host->world, ctx);

	return member ? host->n_ends + member->number
		      : ((struct endpoint *)ctx)->qpn - SIMHOST_FIRST_QPN;
}

static uint64_t on_tag(void *arg, enum urxe_state_kind kind, void *ctx)
{
	const struct simhost *host = arg;

	switch (kind) {
	case URXE_STATE_CQ: return ctx == &host->send_cq ? TAG_SEND_CQ : TAG_RECV_CQ;
	case URXE_STATE_QP: return get_qp_tag(host, ctx);
	case URXE_STATE_SRQ: return (uint64_t)((struct recv_queue **)ctx - host->recv_queue);
	default: return UINT64_MAX;
	}
}

static bool on_saved_completion(void *arg, void *cq_ctx, uint32_t i, struct urxe_wc *wc)
{
	const struct simcq *cq = cq_ctx;

	(void)arg;
	if (i >= cq->tail - cq->head)
		return false;
	*wc = cq->ring[(cq->head + i) & (cq->room - 1)];
	return true;
}

static int save_host(struct simhost *host, uint8_t **stream, size_t *length)
{
	const struct urxe_state_save how = {
		.arg = host, .tag = on_tag, .completion = on_saved_completion};

	return urxe_state_save(host->dev, host->world->now, &how, stream, length);
}

/* The window that is bound over this end's memory, for the stream to this end. */
static struct window *window_of(const struct endpoint *end)
{
	return &end->conn->stream[!end->side].mw;
}

/* Clears all pointers to objects of the old engine. */
static void forget_handles(struct simhost *host)
{
	for (uint32_t i = 0; i < host->n_ends; i++) {
		struct window *window = window_of(host->end[i]);

		host->end[i]->qp = NULL;
		if (window->handle || window->fast)
			window->saved_key = window_key(window);
		window->handle = NULL;
		window->fast = NULL;
	}
	for (uint32_t i = 0; i < host->n_recv_queues; i++)
		host->recv_queue[i]->rq = NULL;
	for (uint32_t i = 0; i < host->world->members.n; i++)
		if (host->world->members.member[i].host == host)
			host->world->members.member[i].qp = NULL;
	host->mr = NULL;
	simcq_free(&host->send_cq);
	simcq_free(&host->recv_cq);
}

/* Moves the memory to another address: the new memory is allocated before the old one is freed. */
static void move_memory(struct simhost *host)
{
	uint8_t *mem = sim_alloc(host->mem_size);

	host->saved_mem = (uintptr_t)host->mem;
	memcpy(mem, host->mem, host->mem_size);
	memset(host->mem, 0xdd, host->mem_size);
	free(host->mem);
	host->mem = mem;
}

static void freeze_host(struct simhost *host)
{
	struct world *world = host->world;
	int rc;

	host_recording_finish(host);
	rc = save_host(host, &host->saved, &host->saved_length);
	if (rc) {
		world_fail(world, "host %u: its state could not be saved: %d", host->id, rc);
		return;
	}
	forget_handles(host);
	host->frozen_counters = *urxe_dev_counters(host->dev);
	urxe_dev_destroy(host->dev);
	host->dev = NULL;
	move_memory(host);
	/* A frozen host counts in n_waiting, because it will continue. */
	world->n_waiting += host->waiting == URXE_NEVER;
	host->waiting = 0;
	host->wake = URXE_NEVER;
	host->turn = URXE_NEVER;
	world_note(world, "host %u is frozen: %zu bytes of state", host->id, host->saved_length);
}

/* --- Restoring. */

static void *on_context(void *arg, const struct urxe_state_object *object)
{
	struct simhost *host = arg;

	if (object->kind == URXE_STATE_CQ)
		return object->tag == TAG_SEND_CQ ? &host->send_cq : &host->recv_cq;
	if (object->kind == URXE_STATE_QP) {
		sim_require(object->tag < host->n_ends + host->world->members.n);
		if (object->tag >= host->n_ends)
			return &host->world->members.member[object->tag - host->n_ends];
		return host->end[object->tag];
	}
	sim_require(object->tag < host->n_recv_queues);
	return &host->recv_queue[object->tag];
}

/* The window with the key that the old engine had; NULL: none. */
static struct window *find_saved_window(const struct simhost *host, uint32_t key)
{
	for (uint32_t i = 0; i < host->n_ends; i++)
		if (window_of(host->end[i])->saved_key == key)
			return window_of(host->end[i]);
	return NULL;
}

static int on_fast_memory(struct simhost *host, struct urxe_state_region *region)
{
	const uint64_t offset = (uintptr_t)region->extents[0].addr - host->saved_mem;

	sim_require(find_saved_window(host, region->key) && region->n_extents == 2);
	sim_require(offset + region->length <= host->mem_size);
	simhost_pages(host, offset, (uint32_t)region->length);
	region->extents = host->pages;
	return 0;
}

static int on_memory(void *arg, struct urxe_state_region *region)
{
	struct simhost *host = arg;

	if (region->key != host->key)
		return on_fast_memory(host, region);
	sim_require(region->length == host->mem_size && region->key == host->key &&
		    region->n_extents == SIMHOST_EXTENTS);
	simhost_extents(host, host->extents);
	region->extents = host->extents;
	return 0;
}

static int on_completion(void *arg, void *cq_ctx, const struct urxe_wc *wc)
{
	(void)arg;
	simcq_push(cq_ctx, wc);
	return 0;
}

static void restore_qp(struct simhost *host, uint32_t qpn, struct urxe_qp *qp)
{
	struct endpoint *end = simhost_end(host, qpn);
	struct member *member = member_find(host, qpn);

	if (member) {
		sim_require(!member->qp);
		member->qp = qp;
		member->recv_queue->rq = urxe_qp_rq(qp);
		return;
	}
	sim_require(end && !end->qp);
	end->qp = qp;
	if (!end->recv_queue->shared)
		end->recv_queue->rq = urxe_qp_rq(qp);
}

static void restore_window(struct simhost *host, uint32_t key, struct urxe_mw *mw,
			   struct urxe_fast_mr *fast)
{
	struct window *window = find_saved_window(host, key);

	sim_require(window);
	window->handle = mw;
	window->fast = fast;
	window->saved_key = 0;
}

static void on_restored(void *arg, const struct urxe_state_object *object)
{
	struct simhost *host = arg;

	switch (object->kind) {
	case URXE_STATE_CQ:
		(object->tag == TAG_SEND_CQ ? &host->send_cq : &host->recv_cq)->cq = object->cq;
		break;
	case URXE_STATE_SRQ: host->recv_queue[object->tag]->rq = object->srq; break;
	case URXE_STATE_QP: restore_qp(host, object->id, object->qp); break;
	case URXE_STATE_MR: host->mr = object->mr; break;
	case URXE_STATE_MW: restore_window(host, object->id, object->mw, NULL); break;
	case URXE_STATE_FAST_MR: restore_window(host, object->id, NULL, object->fast_mr); break;
	default: break;
	}
}

static int restore_host(struct simhost *host)
{
	const struct urxe_state_restore how = {
		.arg = host,
		.context = on_context,
		.memory = on_memory,
		.completion = on_completion,
		.restored = on_restored,
	};
	struct urxe_state_attr saved;
	int rc = urxe_state_read_attr(host->saved, host->saved_length, &saved);

	if (rc)
		return rc;
	saved.attr.ctx = host;
	saved.attr.ops = &simhost_ops;
	rc = urxe_state_restore(&saved.attr, host->world->now, &how, host->saved,
				host->saved_length, &host->dev);
	if (!rc)
		urxe_dev_set_gso(host->dev, host->gso);
	return rc;
}

/* The bytes of the stream's checksum. */
#define CRC_FROM 12
#define CRC_TO   16

static uint64_t get_number(const uint8_t *at)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < 8; i++)
		number |= (uint64_t)at[i] << 8 * i;
	return number;
}

/* Whether both streams have an address here, and both of the same byte of the host's memory. */
static bool has_address(const struct simhost *host, const uint8_t *now, const uint8_t *before)
{
	const uint64_t offset = get_number(before) - host->saved_mem;

	return offset < host->mem_size && get_number(now) == (uintptr_t)host->mem + offset;
}

/* Whether two streams are the same state: only addresses of the memory may differ, and therefore
 * the checksum. */
static bool is_same_state(const struct simhost *host, const uint8_t *now, const uint8_t *before,
			  size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool address = i >= CRC_FROM && i < CRC_TO;

		for (size_t from = i < 7 ? 0 : i - 7; now[i] != before[i] && !address; from++) {
			if (from > i || from + 8 > length)
				return false;
			address = has_address(host, now + from, before + from);
		}
	}
	return true;
}

static void check_same_state(struct simhost *host)
{
	uint8_t *again;
	size_t length;
	int rc = save_host(host, &again, &length);

	if (rc) {
		world_fail(host->world, "host %u: its restored state could not be saved: %d",
			   host->id, rc);
		return;
	}
	if (length != host->saved_length || !is_same_state(host, again, host->saved, length))
		world_fail(host->world, "host %u: the restored state differs from the saved one",
			   host->id);
	urxe_state_free(again);
}

/* --- Announcements. */

/* Gives the host's engine the announcement of the station `mac`. */
static void hear_return(struct simhost *host, const uint8_t mac[6])
{
	uint8_t frame[URXE_ANNOUNCEMENT_LEN];

	urxe_announcement_build(frame, mac);
	simhost_receive(host, frame, sizeof(frame));
	simhost_schedule(host);
}

static void announce_return(struct simhost *moved)
{
	struct world *world = moved->world;
	uint64_t hearers = world->scenario.hearers;
	uint8_t mac[6];

	address_mac(moved->id, mac);
	if (hearers == HEARERS_RANDOM)
		hearers = HEARERS_NONE +
			  rand_below(&world->migrate.rand, HEARERS_COUNT - HEARERS_NONE);
	for (uint32_t i = 0; i < world->n_hosts; i++) {
		struct simhost *host = &world->host[i];
		const bool hears = host == moved
					   ? hearers >= HEARERS_SELF
					   : hearers == HEARERS_PEERS || hearers == HEARERS_ALL;

		if (host->dev && hears)
			hear_return(host, mac);
	}
}

static void plan_next(struct world *world);

static void thaw_host(struct simhost *host)
{
	struct world *world = host->world;
	int rc = restore_host(host);

	if (rc) {
		world_fail(world, "host %u: its state could not be restored: %d", host->id, rc);
		return;
	}
	check_same_state(host);
	world->migrate.bytes += host->saved_length;
	migrate_free(host);
	host->turn = host->open && world->live ? world->now : URXE_NEVER;
	world->migrate.n_moves++;
	world_note(world, "host %u continues", host->id);
	announce_return(host);
	if (!--world->migrate.in_motion && world->live)
		plan_next(world);
}

void migrate_free(struct simhost *host)
{
	urxe_state_free(host->saved);
	host->saved = NULL;
}

/* --- Time. */

/* The shortest local ACK timeout of a reliable connection, ns. */
static uint64_t shortest_timeout(const struct world *world)
{
	uint8_t least = DEFAULT_TIMEOUT;
	bool found = false;

	for (uint32_t i = 0; i < world->n_conns; i++) {
		const struct simconn_attr *attr = &world->conn[i].attr;

		if (attr->type != URXE_QPT_RC || !attr->timeout)
			continue;
		if (!found || attr->timeout < least)
			least = attr->timeout;
		found = true;
	}
	return (uint64_t)ACK_TIMEOUT_NS << least;
}

static uint64_t random_time(struct rand *rand, uint64_t most)
{
	return 1 + rand_next(rand) % most;
}

static bool may_move(const struct simhost *host)
{
	switch (host->world->scenario.movers) {
	case MOVERS_OPENERS: return host->opens;
	case MOVERS_TARGETS: return !host->opens;
	default: return true;
	}
}

static void move_at(struct simhost *host, uint64_t at)
{
	host->world->migrate.in_motion++;
	events_add(&host->world->events, at, EVENT_MOVE, host);
}

/* Plans to freeze one host, some, or all: all at `at`, or each within migrate.pause after it. */
static void plan_hosts(struct world *world, uint64_t at)
{
	struct migrate *migrate = &world->migrate;
	const double share = rand_chance(&migrate->rand, 0.5) ? 0 : 0.5;
	const bool at_once = rand_chance(&migrate->rand, 0.5);
	const uint32_t first = rand_below(&migrate->rand, world->n_hosts);

	for (uint32_t i = 0; i < world->n_hosts; i++) {
		struct simhost *host = &world->host[(first + i) % world->n_hosts];
		uint64_t later;

		if (!may_move(host) || (migrate->in_motion && !rand_chance(&migrate->rand, share)))
			continue;
		later = at_once || !migrate->in_motion
				? 0
				: random_time(&migrate->rand, migrate->pause);
		move_at(host, at + later);
	}
}

/* Chooses how long the hosts of the next migration are frozen at most; returns the time until it
 * begins. */
static uint64_t choose_pause(struct world *world)
{
	struct migrate *migrate = &world->migrate;
	const uint64_t gap = migrate->next_gap, most = world->scenario.pause;

	migrate->pause = scenario_or(most, migrate->timeout);
	migrate->next_gap = GAP_TIMEOUTS * migrate->timeout;
	if (most == BY_SEED && rand_chance(&migrate->rand, SHORT_PAUSES)) {
		if (migrate->pause > SHORT_PAUSE_NS)
			migrate->pause = SHORT_PAUSE_NS;
		migrate->next_gap = SHORT_GAP_NS;
	}
	return gap ? gap / 2 + random_time(&migrate->rand, gap)
		   : random_time(&migrate->rand, FIRST_NS);
}

static void plan_next(struct world *world)
{
	struct migrate *migrate = &world->migrate;

	if (!migrate->left)
		return;
	migrate->left--;
	plan_hosts(world, world->now + choose_pause(world));
}

void migrate_start(struct world *world)
{
	const struct scenario *s = &world->scenario;

	world->migrate = (struct migrate){
		.rand = {s->seed ^ 0x6d696772617465},
		.left = s->migrate,
		.timeout = shortest_timeout(world),
	};
	plan_next(world);
}

void migrate_host(struct simhost *host)
{
	struct world *world = host->world;
	struct migrate *migrate = &world->migrate;

	if (host->saved) {
		thaw_host(host);
	} else if (!world->live) {
		migrate->in_motion--;
	} else {
		freeze_host(host);
		events_add(&world->events,
			   world->now + (world->scenario.pause != BY_SEED
						 ? world->scenario.pause
						 : random_time(&migrate->rand, migrate->pause)),
			   EVENT_MOVE, host);
	}
}
