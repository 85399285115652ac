/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/simhost.h"

#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/check/check.h"
#include "sim/host/migrate.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/network/address.h"
#include "sim/world.h"

/* Frames that a host takes from the engine at once; they wait in it until the cable is free. */
#define BURST 4

/* --- Callbacks of the engine. */

static void grow_cq(struct simcq *cq)
{
	uint32_t room = cq->room ? 2 * cq->room : 32;
	struct urxe_wc *ring = sim_alloc(room * sizeof(*ring));

	for (uint32_t i = cq->head; i != cq->tail; i++)
		ring[i & (room - 1)] = cq->ring[i & (cq->room - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->room = room;
}

void simcq_push(struct simcq *cq, const struct urxe_wc *wc)
{
	if (cq->tail - cq->head == cq->room)
		grow_cq(cq);
	cq->ring[cq->tail++ & (cq->room - 1)] = *wc;
}

static bool on_complete(void *cq_ctx, const struct urxe_wc *wc)
{
	check_drained(cq_ctx, wc);
	simcq_push(cq_ctx, wc);
	return true;
}

static void on_comp_event(void *cq_ctx)
{
	check_comp_event(cq_ctx);
}

static void on_refill(void *rq_ctx)
{
	struct recv_queue *recv_queue = SIMHOST_RECV_QUEUE(rq_ctx);

	if (recv_queue->refills_in_callback)
		recv_queue_post(recv_queue, 2);
}

static void on_async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	check_event(dev_ctx, event, obj_ctx);
}

/* Returns true: simulated memory counts as persistent. */
static bool on_persist(void *dev_ctx, const struct urxe_extent *bytes)
{
	(void)dev_ctx, (void)bytes;
	return true;
}

/* Resolves the page list of a fast registration: request->page_list is an offset in the host's
 * memory. Always succeeds. */
static bool on_page_list(void *dev_ctx, const struct urxe_fast_reg *request,
			 const struct urxe_extent **extents, uint32_t *n_extents)
{
	struct simhost *host = dev_ctx;

	simhost_pages(host, request->page_list, (uint32_t)request->length);
	*extents = host->pages;
	*n_extents = 2;
	return true;
}

const struct urxe_ops simhost_ops = {
	.page_list = on_page_list,
	.persist = on_persist,
	.complete = on_complete,
	.comp_event = on_comp_event,
	.refill = on_refill,
	.async_event = on_async_event,
};

/* --- Creation and destruction. */

uint64_t simhost_alloc(struct simhost *host, uint64_t length)
{
	const uint64_t at = host->mem_size;

	host->mem_size += (length + 7) & ~UINT64_C(7);
	return at;
}

static bool is_strict(const struct simhost *host)
{
	switch (host->world->scenario.go_back_n) {
	case STRICT_ALL: return true;
	case STRICT_OPENERS: return host->opens;
	case STRICT_TARGETS: return !host->opens;
	default: return false;
	}
}

static void create_dev(struct simhost *host, uint64_t seed, uint32_t window)
{
	const struct scenario *scenario = &host->world->scenario;
	struct urxe_dev_attr attr = {
		.ctx = host,
		.ops = &simhost_ops,
		.mtu = 4200,
		.qpn_first = SIMHOST_FIRST_QPN,
		.qpn_count = 0xffff00,
		.seed = seed,
		.max_packets = window,
		.reorder_ns = (uint32_t)scenario->gap_time,
		.probe_ns = (uint32_t)scenario->probe_time,
		.go_back_n = is_strict(host),
		.congestion = (uint8_t)scenario->congestion,
		.link_bps = host->world->fabric.rate,
	};

	address_mac(host->id, attr.mac);
	sim_require(urxe_dev_create(&attr, &host->dev) == 0);
	host->gso = rand_chance(&host->world->event_rand, 0.5);
	urxe_dev_set_gso(host->dev, host->gso);
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		const struct urxe_gid gid = address_gid((enum urxe_net)net, host->id);

		sim_require(urxe_gid_set(host->dev, SIMHOST_SGID(net), &gid,
					 net == URXE_NET_ROCEV1) == 0);
	}
}

void simhost_extents(const struct simhost *host, struct urxe_extent extents[SIMHOST_EXTENTS])
{
	const uint64_t third = host->mem_size / 3 & ~UINT64_C(7);

	extents[0] = (struct urxe_extent){host->mem, third};
	extents[1] = (struct urxe_extent){host->mem + third, third};
	extents[2] = (struct urxe_extent){host->mem + 2 * third, host->mem_size - 2 * third};
}

static struct urxe_mr_attr get_mr_attr(const struct simhost *host, struct urxe_extent *extents)
{
	simhost_extents(host, extents);
	return (struct urxe_mr_attr){
		.pd = SIMHOST_PD,
		.access = SIMHOST_ACCESS | URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_MW_BIND,
		.iova = host->iova,
		.length = host->mem_size,
		.extents = extents,
		.n_extents = SIMHOST_EXTENTS,
	};
}

void simhost_pages(struct simhost *host, uint64_t offset, uint32_t length)
{
	const uint32_t half = length / 2 & ~7u;

	host->pages[0] = (struct urxe_extent){host->mem + offset, half};
	host->pages[1] = (struct urxe_extent){host->mem + offset + half, length - half};
}

static void register_mem(struct simhost *host)
{
	struct urxe_extent extents[SIMHOST_EXTENTS];
	const struct urxe_mr_attr attr = get_mr_attr(host, extents);

	sim_require(urxe_mr_reg(host->dev, &attr, &host->mr) == 0);
	host->key = urxe_mr_key(host->mr);
}

int simhost_register_again(struct simhost *host)
{
	struct urxe_extent extents[SIMHOST_EXTENTS];
	const struct urxe_mr_attr attr = get_mr_attr(host, extents);

	return urxe_mr_rereg(&host->mr, &attr);
}

void simhost_start(struct simhost *host, uint64_t seed, uint32_t window)
{
	host->wake = host->turn = URXE_NEVER;
	host->mem_size += 24; /* so that each extent has bytes */
	host->mem = sim_calloc(1, host->mem_size);
	host->iova = 0xab0000000000u + ((uint64_t)host->id << 44);
	create_dev(host, seed, window);
	register_mem(host);
	host->send_cq.host = host->recv_cq.host = host;
	sim_require(urxe_cq_create(host->dev, &host->send_cq, &host->send_cq.cq) == 0);
	sim_require(urxe_cq_create(host->dev, &host->recv_cq, &host->recv_cq.cq) == 0);
}

void simhost_free(struct simhost *host)
{
	if (host->dev)
		urxe_dev_destroy(host->dev);
	migrate_free(host);
	free(host->recording.bytes);
	simcq_free(&host->send_cq);
	simcq_free(&host->recv_cq);
	for (uint32_t i = 0; i < host->n_recv_queues; i++)
		recv_queue_free(host->recv_queue[i]);
	free(host->recv_queue);
	free(host->end);
	free(host->mem);
}

struct endpoint *simhost_end(const struct simhost *host, uint32_t qpn)
{
	const uint32_t i = qpn - SIMHOST_FIRST_QPN;

	return i < host->n_ends ? host->end[i] : NULL;
}

struct urxe_seg simhost_seg(const struct simhost *host, uint64_t offset, uint32_t length)
{
	return (struct urxe_seg){host->iova + offset, length, host->key};
}

bool simcq_poll(struct simcq *cq, struct urxe_wc *wc)
{
	if (cq->head == cq->tail)
		return false;
	*wc = cq->ring[cq->head++ & (cq->room - 1)];
	check_told(cq, wc);
	return true;
}

void simcq_arm(struct simcq *cq)
{
	struct rand *r = &cq->host->world->event_rand;

	if (cq->armed || cq->head != cq->tail || rand_chance(r, 0.5))
		return;
	cq->armed = true;
	cq->solicited_only = rand_chance(r, 0.5);
	urxe_cq_arm(cq->cq, cq->solicited_only);
}

void simcq_free(struct simcq *cq)
{
	free(cq->ring);
	cq->ring = NULL;
	cq->head = cq->tail = cq->room = 0;
	cq->cq = NULL;
}

/* --- Frames and time. */

void simhost_receive(struct simhost *host, uint8_t *data, uint32_t len)
{
	const struct urxe_frame frame = {data, len, len};

	urxe_input(host->dev, host->world->now, &frame, 1);
}

/* Sends up to BURST frames of the engine. True: the engine may have more to send. */
static bool send_simhost_burst(struct simhost *host)
{
	struct world *world = host->world;
	static uint8_t room[BURST][FABRIC_FRAME_MAX];
	struct urxe_frame frames[BURST];
	uint32_t n;

	for (uint32_t i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = room[i], .room = FABRIC_FRAME_MAX};
	n = urxe_output(host->dev, world->now, frames, BURST);
	check_gso(host, frames, n);
	for (uint32_t i = 0; i < n; i++) {
		world_trace(world, host, frames[i].data, frames[i].len);
		fabric_send(&world->fabric, world->now, host->id, frames[i].data, frames[i].len);
	}
	return n == BURST;
}

static void wake_at(struct simhost *host, uint64_t at)
{
	if (at >= host->wake)
		return;
	host->wake = at;
	events_add(&host->world->events, at, EVENT_WAKE, host);
}

/* From when on the host may take frames from the engine: its ring holds as many frames as the cable
 * sends in `send_ahead` ns. */
static uint64_t get_sending_time(const struct simhost *host)
{
	const struct world *world = host->world;
	const uint64_t free_at = fabric_uplink_free(&world->fabric, host->id);

	return free_at > world->scenario.send_ahead ? free_at - world->scenario.send_ahead : 0;
}

void simhost_send(struct simhost *host)
{
	bool more = true;

	while (more && get_sending_time(host) <= host->world->now)
		more = send_simhost_burst(host);
}

void simhost_schedule(struct simhost *host)
{
	struct world *world = host->world;
	uint64_t sending_at, deadline;

	deadline = urxe_next_deadline(host->dev);
	world->n_waiting += (deadline != URXE_NEVER) - (host->waiting != URXE_NEVER);
	host->waiting = deadline;
	sending_at = get_sending_time(host);
	if (deadline < sending_at)
		deadline = sending_at;
	if (deadline < world->now)
		deadline = world->now;
	if (deadline > host->turn)
		deadline = host->turn;
	if (deadline != URXE_NEVER)
		wake_at(host, deadline);
}
