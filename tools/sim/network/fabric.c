/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/network/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "sim/alloc.h"
#include "sim/network/address.h"
#include "sim/network/ecn.h"

#define PS 1000 /* ps per ns */
/* Preamble, start delimiter, FCS and interframe gap (IEEE 802.3). */
#define WIRE_OVERHEAD 24
#define WIRE_MIN      84 /* minimum frame with WIRE_OVERHEAD */

void fabric_init(struct fabric *fabric, const struct scenario *scenario, struct events *events,
		 struct rand *rand)
{
	*fabric = (struct fabric){
		.scenario = scenario,
		.events = events,
		.n_hosts = (uint32_t)scenario->nodes,
	};
	/* One random choice per statement, because a seed depends on their order. */
	fabric->rand.state = rand_next(rand);
	fabric->delay = scenario_or(scenario->delay, rand_in(rand, 100, 20000));
	/* Half of the worlds have cables with a limited rate. */
	fabric->rate = scenario_or(
		scenario->rate,
		rand_chance(rand, 0.5) ? 0 : rand_in(rand, 1, 100) * UINT64_C(1000000000));
	fabric->uplinks = sim_calloc(fabric->n_hosts, sizeof(*fabric->uplinks));
	fabric->queues = sim_calloc(fabric->n_hosts, sizeof(*fabric->queues));
	impair_init(&fabric->impair, scenario, rand_next(rand));
}

/* --- Frames. */

static unsigned get_size_class(uint32_t len)
{
	return (unsigned)((sizeof(struct fabric_frame) + len) / FABRIC_SIZE_STEP);
}

static struct fabric_frame *allocate_frame(struct fabric *fabric, uint32_t len)
{
	const unsigned class = get_size_class(len);
	struct fabric_frame *frame = fabric->free_frames[class];

	if (!frame)
		return sim_alloc((class + 1) * FABRIC_SIZE_STEP);
	fabric->free_frames[class] = frame->next;
	return frame;
}

static void free_frame(struct fabric *fabric, struct fabric_frame *frame)
{
	struct fabric_frame **list = &fabric->free_frames[get_size_class(frame->len)];

	frame->next = *list;
	*list = frame;
}

static void free_frame_list(struct fabric_frame *frame)
{
	while (frame) {
		struct fabric_frame *next = frame->next;

		free(frame);
		frame = next;
	}
}

static void free_frames(struct fabric *fabric)
{
	struct event event;

	while (events_pop(fabric->events, &event)) {
		if (event_kind(&event) == EVENT_SWITCH)
			free_frame(fabric, event.object);
		else if (event_kind(&event) == EVENT_ARRIVE)
			fabric_arrived(fabric, event.object);
	}
	for (unsigned i = 0; i < FABRIC_SIZES; i++)
		free_frame_list(fabric->free_frames[i]);
}

void fabric_free(struct fabric *fabric)
{
	free_frames(fabric);
	impair_free(&fabric->impair);
	free(fabric->uplinks);
	free(fabric->queues);
}

static uint64_t get_wire_time_ps(const struct fabric *fabric, uint32_t len)
{
	const uint64_t bytes = len + WIRE_OVERHEAD < WIRE_MIN ? WIRE_MIN : len + WIRE_OVERHEAD;

	return bytes * UINT64_C(8000000000000) / fabric->rate;
}

/* Queues the frame at the port; returns the time in ps when its last bit is sent. */
static uint64_t occupy_port(const struct fabric *fabric, struct fabric_port *port, uint64_t now,
			    uint32_t len)
{
	if (port->free < now * PS)
		port->free = now * PS;
	port->free += get_wire_time_ps(fabric, len);
	return port->free;
}

static uint64_t round_up_to_ns(uint64_t ps)
{
	return (ps + PS - 1) / PS;
}

static void report_loss(const struct fabric *fabric, uint32_t to, const uint8_t *data, uint32_t len)
{
	if (fabric->lost)
		fabric->lost(fabric->lost_arg, to, data, len);
}

/* Schedules the arrival of a frame whose last bit leaves the host at `sent`. */
static void schedule_arrival(struct fabric *fabric, uint64_t sent, uint32_t from, uint32_t to,
			     const uint8_t *data, uint32_t len)
{
	struct fabric_frame *frame = allocate_frame(fabric, len);
	uint64_t late = impair_reorder(&fabric->impair);

	frame->to = to;
	frame->len = len;
	memcpy(frame->data, data, len);
	fabric->counters.reordered += late > 0;
	frame->corrupted = impair_corrupt(&fabric->impair, from, frame->data, len);
	if (frame->corrupted) {
		fabric->counters.corrupted++;
		report_loss(fabric, to, data, len);
	}
	if (fabric->rate)
		events_add(fabric->events, sent + fabric->delay / 2 + late, EVENT_SWITCH, frame);
	else
		events_add(fabric->events, sent + fabric->delay + late, EVENT_ARRIVE, frame);
}

/* Schedules the arrival at the host that the destination MAC names, or at all other hosts. */
static void schedule_arrivals(struct fabric *fabric, uint64_t sent, uint32_t from,
			      const uint8_t *data, uint32_t len)
{
	if (!address_is_group(data)) {
		schedule_arrival(fabric, sent, from, address_host(data), data, len);
		return;
	}
	for (uint32_t to = 0; to < fabric->n_hosts; to++)
		if (to != from)
			schedule_arrival(fabric, sent, from, to, data, len);
	fabric->counters.copies += fabric->n_hosts - 2;
}

static void lose_frame(struct fabric *fabric, uint32_t from, const uint8_t *data, uint32_t len)
{
	fabric->counters.lost++;
	if (!address_is_group(data)) {
		report_loss(fabric, address_host(data), data, len);
		return;
	}
	for (uint32_t to = 0; to < fabric->n_hosts; to++)
		if (to != from)
			report_loss(fabric, to, data, len);
}

void fabric_send(struct fabric *fabric, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len)
{
	uint64_t sent = now;

	fabric->counters.sent++;
	fabric->counters.bytes += len;
	if (fabric->rate)
		sent = round_up_to_ns(occupy_port(fabric, &fabric->uplinks[from], now, len));
	sim_require(address_is_group(data) || address_host(data) < fabric->n_hosts);
	if (impair_lose(&fabric->impair, from, data, len)) {
		lose_frame(fabric, from, data, len);
		return;
	}
	schedule_arrivals(fabric, sent, from, data, len);
	if (impair_duplicate(&fabric->impair)) {
		fabric->counters.duplicated++;
		schedule_arrivals(fabric, sent, from, data, len);
	}
}

/* --- The switch. */

static uint64_t get_backlog(const struct fabric *fabric, const struct fabric_queue *queue,
			    uint64_t now)
{
	if (queue->port.free <= now * PS)
		return 0;
	return (uint64_t)((double)(queue->port.free - now * PS) * (double)fabric->rate / 8e12);
}

/* Adds to the integral of the queue's length the time from `seen` to `now`, in which the queue
 * drains at the cable's rate. */
static void add_area(const struct fabric *fabric, struct fabric_queue *queue, uint64_t now)
{
	const uint64_t until = queue->port.free < now * PS ? queue->port.free : now * PS;
	const double bytes_per_ps = (double)fabric->rate / 8e12;

	if (until > queue->seen) {
		const double first = (double)(queue->port.free - queue->seen);
		const double last = (double)(queue->port.free - until);

		queue->area += (first + last) / 2 * bytes_per_ps * (double)(until - queue->seen);
	}
	if (now * PS > queue->seen)
		queue->seen = now * PS;
}

/* Whether the switch marks a frame: RED by the current queue length, bytes, as in DCQCN's switches
 * (SIGCOMM 2015, figure 4). */
static bool choose_mark(struct fabric *fabric, uint64_t length)
{
	const struct scenario *s = fabric->scenario;

	if (s->ecn_share <= 0 || length <= s->ecn_min)
		return false;
	if (length > s->ecn_max)
		return true;
	return rand_chance(&fabric->rand, s->ecn_share * (double)(length - s->ecn_min) /
						  (double)(s->ecn_max - s->ecn_min));
}

static void enqueue_frame(struct fabric *fabric, struct fabric_queue *queue,
			  struct fabric_frame *frame)
{
	frame->next = NULL;
	if (queue->first) {
		*queue->last = frame;
	} else {
		queue->first = frame;
		events_add(fabric->events, frame->at, EVENT_ARRIVE, frame);
	}
	queue->last = &frame->next;
}

void fabric_switch(struct fabric *fabric, uint64_t now, struct fabric_frame *frame)
{
	struct fabric_queue *queue = &fabric->queues[frame->to];
	const uint64_t length = get_backlog(fabric, queue, now) + frame->len;

	add_area(fabric, queue, now);
	if (fabric->scenario->queue && length > fabric->scenario->queue) {
		fabric->counters.tail_drops++;
		report_loss(fabric, frame->to, frame->data, frame->len);
		free_frame(fabric, frame);
		return;
	}
	if (length > queue->max)
		queue->max = length;
	if (choose_mark(fabric, length) && ecn_mark(frame->data, frame->len))
		fabric->counters.marked++;
	frame->at = round_up_to_ns(occupy_port(fabric, &queue->port, now, frame->len)) +
		    fabric->delay - fabric->delay / 2;
	enqueue_frame(fabric, queue, frame);
}

void fabric_arrived(struct fabric *fabric, struct fabric_frame *frame)
{
	struct fabric_queue *queue = &fabric->queues[frame->to];

	/* Without a rate there are no queues. */
	if (fabric->rate) {
		queue->first = frame->next;
		if (queue->first)
			events_add(fabric->events, queue->first->at, EVENT_ARRIVE, queue->first);
	}
	free_frame(fabric, frame);
}

uint64_t fabric_uplink_free(const struct fabric *fabric, uint32_t host)
{
	return round_up_to_ns(fabric->uplinks[host].free);
}

double fabric_mean_queue(struct fabric *fabric, uint64_t now, uint32_t host)
{
	struct fabric_queue *queue = &fabric->queues[host];

	add_area(fabric, queue, now);
	return queue->seen > queue->since ? queue->area / (double)(queue->seen - queue->since) : 0;
}

void fabric_reset_queues(struct fabric *fabric, uint64_t now)
{
	for (uint32_t i = 0; i < fabric->n_hosts; i++) {
		struct fabric_queue *queue = &fabric->queues[i];

		add_area(fabric, queue, now);
		queue->area = 0;
		queue->since = queue->seen;
		queue->max = get_backlog(fabric, queue, now);
	}
}
