/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/check/check.h"
#include "sim/host/recv_queue.h"
#include "sim/trace.h"

#define SECOND UINT64_C(1000000000)
/* The longest virtual time of a simulation. */
#define LIMIT (4000 * SECOND)
/* Longest pause between two turns of an application. While the application is idle, the pause
 * doubles each time up to TURN_MAX_NS. */
#define TURN_NS     200000
#define TURN_MAX_NS SECOND
/* Turns per host without a post or a completion, after which the simulation counts as hung. */
#define MAX_STANDSTILL 64
/* Events per host at one instant without a post, a completion or a received frame, after which a
 * timer counts as spinning. */
#define MAX_AT_ONCE 100000

/* --- Failures and trace. */

static void record_failure(struct world *world, uint32_t one, uint32_t other, const char *format,
			   va_list args)
{
	if (world->failure[0])
		return;
	vsnprintf(world->failure, sizeof(world->failure), format, args);
	world->failed_host[0] = one;
	world->failed_host[1] = other;
}

void world_fail(struct world *world, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record_failure(world, world->n_hosts, world->n_hosts, format, args);
	va_end(args);
}

void world_fail_stream(const struct stream *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record_failure(stream->world, stream_from(stream)->host->id, stream_to(stream)->host->id,
		       format, args);
	va_end(args);
}

void world_note(struct world *world, const char *format, ...)
{
	va_list args;

	if (!world->trace || !world->trace->text)
		return;
	fprintf(world->trace->text, "%12" PRIu64 " ", world->now);
	va_start(args, format);
	vfprintf(world->trace->text, format, args);
	va_end(args);
	fputc('\n', world->trace->text);
}

void world_trace(struct world *world, const struct simhost *from, const uint8_t *data, uint32_t len)
{
	if (world->trace)
		trace_frame(world->trace, world->now, from->id, data, len);
}

/* --- Setup. */

static uint32_t choose_peer(struct world *world, uint32_t host)
{
	const uint32_t n = world->n_hosts;
	uint32_t target;

	switch (world->scenario.pattern) {
	case PATTERN_PAIRS: return host & 1 ? host - 1 : host;
	case PATTERN_RING: return (host + 1) % n;
	case PATTERN_INCAST: return 0;
	case PATTERN_SOME: return rand_below(&world->rand, (n + 9) / 10);
	default: target = rand_below(&world->rand, n - 1); return target + (target >= host);
	}
}

static void plan_conns(struct world *world)
{
	const struct scenario *s = &world->scenario;
	const uint32_t qps = (uint32_t)scenario_or(s->qps, rand_in(&world->rand, 1, 2));

	world->conn = sim_calloc((size_t)world->n_hosts * qps, sizeof(*world->conn));
	for (uint32_t host = 0; host < world->n_hosts; host++)
		for (uint32_t i = 0; i < qps; i++) {
			const uint32_t target = choose_peer(world, host);

			if (target != host)
				simconn_plan(&world->conn[world->n_conns++], world,
					     &world->host[host], &world->host[target]);
		}
}

static void start_hosts(struct world *world)
{
	const uint32_t window = (uint32_t)scenario_or(world->scenario.window,
						      scenario_is_bulk(&world->scenario) ||
								      rand_chance(&world->rand, 0.5)
							      ? 0
							      : rand_in(&world->rand, 1, 128));

	for (uint32_t i = 0; i < world->n_hosts; i++) {
		struct simhost *host = &world->host[i];

		host->shared_word = simhost_alloc(host, 8);
		simhost_start(host, rand_next(&world->rand), window);
		for (uint32_t k = 0; k < host->n_recv_queues; k++)
			recv_queue_open(host->recv_queue[k]);
	}
	for (uint32_t i = 0; i < world->n_conns; i++)
		simconn_open(&world->conn[i], world);
	members_open(world);
}

static void describe_network(struct world *world)
{
	const struct scenario *s = &world->scenario;

	world->reorders_or_duplicates = s->duplicate > 0 || s->reorder > 0;
	world->undisturbed = !world->reorders_or_duplicates && s->loss <= 0 && s->corrupt <= 0 &&
			     !s->drop_mask && !world->fabric.rate && !s->migrate;
}

static void note_lost_frame(void *arg, uint32_t to, const uint8_t *data, uint32_t len)
{
	check_lost_frame(arg, to, data, len);
}

static void create_world(struct world *world, const struct scenario *scenario, struct trace *trace)
{
	*world = (struct world){
		.scenario = *scenario,
		.rand = {scenario->seed},
		.trace = trace,
		.now = 1, /* urxe_next_deadline returns 0 for "at once" */
		.n_hosts = (uint32_t)scenario->nodes,
		.event_rand = {scenario->seed ^ 0x6576656e7473},
		.size = (uint32_t)scenario->size,
		.size_bits = 1,
	};
	while (world->size_bits < 31 && 1u << world->size_bits < world->size)
		world->size_bits++;
	world->scratch = sim_alloc(world->size + 64);
	world->arrived = sim_alloc(world->size + 64 + URXE_GRH_LEN);
	world->host = sim_calloc(world->n_hosts, sizeof(*world->host));
	for (uint32_t i = 0; i < world->n_hosts; i++) {
		world->host[i].world = world;
		world->host[i].id = i;
		world->host[i].waiting = URXE_NEVER;
		world->host[i].pause = TURN_NS;
	}
	fabric_init(&world->fabric, &world->scenario, &world->events, &world->rand);
	world->fabric.lost = note_lost_frame;
	world->fabric.lost_arg = world;
	describe_network(world);
	plan_conns(world);
	failure_plan(world);
	drain_plan(world);
	recv_queues_plan_resizes(world);
	change_plan(world);
	members_plan(world);
	start_hosts(world);
}

void world_free(struct world *world)
{
	members_free(world);
	fabric_free(&world->fabric);
	events_free(&world->events);
	for (uint32_t i = 0; i < world->n_conns; i++)
		simconn_free(&world->conn[i]);
	for (uint32_t i = 0; i < world->n_hosts; i++)
		simhost_free(&world->host[i]);
	free(world->conn);
	free(world->host);
	free(world->atomics);
	free(world->scratch);
	free(world->arrived);
}

/* --- Applications. */

static void poll_completions(struct simhost *host)
{
	struct world *world = host->world;
	struct urxe_wc wc;

	while (!world->failure[0] && simcq_poll(&host->recv_cq, &wc)) {
		check_delivery(host, &wc);
		world->activity++;
	}
	while (!world->failure[0] && simcq_poll(&host->send_cq, &wc)) {
		check_completion(host, &wc);
		world->activity++;
	}
}

static void post_requests(struct simhost *host)
{
	struct world *world = host->world;
	const bool bulk = scenario_is_bulk(&world->scenario);

	for (uint32_t i = 0; i < host->n_recv_queues; i++) {
		recv_queue_post(host->recv_queue[i],
				bulk ? RECV_QUEUE_DEPTH : rand_below(&world->rand, 4));
		recv_queue_turn(host->recv_queue[i]);
	}
	for (uint32_t i = 0; i < host->n_ends; i++) {
		struct endpoint *end = host->end[i];

		stream_post(&end->conn->stream[end->side]);
		failure_turn(end);
		drain_turn(end);
		change_turn(end);
	}
	members_turn(host);
}

static void request_events(struct simhost *host)
{
	simcq_arm(&host->recv_cq);
	simcq_arm(&host->send_cq);
	for (uint32_t i = 0; i < host->n_recv_queues; i++)
		recv_queue_arm(host->recv_queue[i]);
}

/* Time of the application's next turn; URXE_NEVER: none is planned. Applications of bulk traffic
 * have a turn at each completion (hasten_turn), others at random times. */
static uint64_t get_next_turn(struct simhost *host, bool idle)
{
	struct world *world = host->world;

	if (!host->open || scenario_is_bulk(&world->scenario))
		return URXE_NEVER;
	host->pause = !idle ? TURN_NS : host->pause < TURN_MAX_NS ? 2 * host->pause : TURN_MAX_NS;
	return world->now + rand_in(&world->rand, 1, (uint32_t)host->pause);
}

/* Fails with the first stream that is not done. */
static void fail_unfinished_stream(struct world *world, const char *what)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			const struct stream *stream = &world->conn[i].stream[side];

			if (!stream_done(stream))
				world_fail_stream(
					stream,
					"%s: qp %06x of host %u has %u of %u requests complete, "
					"%u posted",
					what, stream_from(stream)->qpn,
					stream_from(stream)->host->id, stream->completed, stream->n,
					stream->posted);
		}
}

static void run_application(struct simhost *host)
{
	struct world *world = host->world;
	const uint64_t before = world->activity;
	bool idle;

	check_srqs(host);
	poll_completions(host);
	request_events(host);
	post_requests(host);
	idle = world->activity == before;
	host->turn = get_next_turn(host, idle);
	world->idle_turns = idle ? world->idle_turns + 1 : 0;
	if (world->idle_turns > (uint64_t)MAX_STANDSTILL * world->n_hosts &&
	    !world->events.n_frames && !world->n_waiting)
		fail_unfinished_stream(world, "no request makes progress");
}

void world_stream_done(struct stream *stream)
{
	stream_from(stream)->host->open--;
	stream_to(stream)->host->open--;
	stream->world->open--;
}

/* Makes the application's next turn come earlier if completions wait to be polled. */
static void hasten_turn(struct simhost *host)
{
	struct world *world = host->world;

	if (host->send_cq.head == host->send_cq.tail && host->recv_cq.head == host->recv_cq.tail)
		return;
	if (scenario_is_bulk(&world->scenario))
		host->turn = world->now;
	else if (host->turn > world->now + TURN_NS)
		host->turn = world->now + rand_in(&world->rand, 1, TURN_NS);
}

/* --- Time. */

static void run_host(struct simhost *host)
{
	if (!host->dev)
		return; /* frozen */
	host_recording_turn(host);
	if (host->world->live && host->turn <= host->world->now)
		run_application(host);
	simhost_send(host);
	/* A received frame or a timer may have completed requests. */
	if (host->world->live)
		hasten_turn(host);
	simhost_schedule(host);
}

static void deliver_frame(struct world *world, struct fabric_frame *frame)
{
	struct simhost *host = &world->host[frame->to];

	if (host->dev) {
		world->received++;
		if (!frame->corrupted)
			check_first_packet(host, frame->data, frame->len);
		simhost_receive(host, frame->data, frame->len);
	} else {
		world->migrate.missed++;
		check_lost_frame(world, frame->to, frame->data, frame->len);
	}
	fabric_arrived(&world->fabric, frame);
	run_host(host);
}

static void wake_host(struct simhost *host, uint64_t at)
{
	/* Ignores an event in whose place wake_at has added an earlier one. */
	if (at != host->wake)
		return;
	host->wake = URXE_NEVER;
	run_host(host);
}

static void move_host(struct simhost *host)
{
	migrate_host(host);
	run_host(host);
}

static void handle_event(struct world *world, const struct event *event)
{
	switch (event_kind(event)) {
	case EVENT_SWITCH: fabric_switch(&world->fabric, event->at, event->object); break;
	case EVENT_ARRIVE: deliver_frame(world, event->object); break;
	case EVENT_WAKE: wake_host(event->object, event->at); break;
	case EVENT_MOVE: move_host(event->object); break;
	}
}

/*
 * Counts what shows progress within one instant: on a network without delay or rate, all of the
 * traffic may happen at one instant. Sent frames do not count, because a timer that spins may send
 * one each time.
 */
static uint64_t count_done(const struct world *world)
{
	return world->activity + world->received;
}

/* Handles events up to `until`, until a check fails, or until all streams of live applications are
 * done. False: a timer spins at one instant. */
static bool run_events(struct world *world, uint64_t until)
{
	const uint64_t most = (uint64_t)MAX_AT_ONCE * world->n_hosts;
	struct event event;
	uint64_t at_once = 0, done = count_done(world);

	while (!world->failure[0] && events_next(&world->events) <= until) {
		events_pop(&world->events, &event);
		at_once = event.at > world->now || count_done(world) != done ? 0 : at_once + 1;
		if (at_once > most)
			return false;
		done = count_done(world);
		world->now = event.at;
		handle_event(world, &event);
		if (world->live && !world->open)
			return true;
	}
	return true;
}

bool world_settle(struct world *world, uint64_t until)
{
	world->live = false;
	for (uint32_t i = 0; i < world->n_hosts; i++)
		world->host[i].turn = URXE_NEVER;
	return run_events(world, until) && !world->events.n;
}

static void start_goodput(struct world *world)
{
	world->warm_from = world->now;
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++)
			world->conn[i].stream[side].warm = world->conn[i].stream[side].bytes;
	fabric_reset_queues(&world->fabric, world->now);
}

static void end_goodput(struct world *world)
{
	world->warm_until = world->now;
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			struct stream *stream = &world->conn[i].stream[side];

			stream->counted = stream->bytes - stream->warm;
		}
	for (uint32_t i = 1; i < world->n_hosts; i++)
		if (world->fabric.queues[i].max > world->fabric.queues[world->hot_host].max)
			world->hot_host = i;
	world->hot_max = world->fabric.queues[world->hot_host].max;
	world->hot_mean = fabric_mean_queue(&world->fabric, world->now, world->hot_host);
}

static void stop_posting(struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++)
			stream_stop(&world->conn[i].stream[side]);
}

/* Runs up to `until`, or until all streams are done. */
static void run_until(struct world *world, uint64_t until)
{
	if (!run_events(world, until))
		world_fail(world, "a deadline stays due, and time stands still");
	if (!world->failure[0] && world->open && world->now < until)
		world->now = until;
}

static void end_recordings(struct world *world)
{
	world->recordings.left = 0;
	for (uint32_t i = 0; i < world->n_hosts && !world->failure[0]; i++)
		host_recording_finish(&world->host[i]);
}

static void run_traffic(struct world *world)
{
	world->live = true;
	for (uint32_t i = 0; i < world->n_hosts; i++) {
		world->host[i].turn = world->now;
		simhost_schedule(&world->host[i]);
	}
	migrate_start(world);
	sim_recordings_init(world);
	run_until(world, world->scenario.warmup);
	start_goodput(world);
	if (world->open && !world->failure[0])
		run_until(world, world->scenario.time);
	end_goodput(world);
	if (world->open && !world->failure[0]) {
		stop_posting(world);
		run_until(world, LIMIT);
	}
	if (!world->failure[0])
		end_recordings(world);
	if (world->open && !world->failure[0])
		fail_unfinished_stream(world, world->events.n ? "the time is up"
							      : "no request makes progress");
}

uint64_t world_lost_frames(const struct world *world)
{
	const struct fabric_counters *f = &world->fabric.counters;

	return f->lost + f->corrupted + f->tail_drops + world->migrate.missed;
}

void world_sum_counters(const struct world *world, struct urxe_counters *sum)
{
	*sum = (struct urxe_counters){0};
	for (uint32_t i = 0; i < world->n_hosts; i++) {
		const struct simhost *host = &world->host[i];
		const struct urxe_counters *c =
			host->dev ? urxe_dev_counters(host->dev) : &host->frozen_counters;

		for (unsigned k = 0; k < URXE_DROP_COUNT; k++)
			sum->drop[k] += c->drop[k];
		for (unsigned k = 0; k < URXE_EVENT_COUNT; k++)
			sum->event[k] += c->event[k];
	}
}

static void run_final_checks(struct world *world)
{
	static void (*const checks[])(struct world *) = {
		check_memory, check_unreliable, check_multicast, check_atomics, check_counters};

	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]) && !world->failure[0]; i++)
		checks[i](world);
}

bool world_run(struct world *world, const struct scenario *scenario, struct trace *trace,
	       void (*on_phase)(void *arg, enum phase phase, struct world *world), void *arg)
{
	static void (*const phases[])(struct world *) = {[PHASE_TRAFFIC] = run_traffic,
							 [PHASE_QUIET] = check_quiet,
							 [PHASE_CHECK] = run_final_checks};

	create_world(world, scenario, trace);
	on_phase(arg, PHASE_SETUP, world);
	for (enum phase phase = PHASE_TRAFFIC; phase <= PHASE_CHECK && !world->failure[0];
	     phase++) {
		phases[phase](world);
		if (!world->failure[0])
			on_phase(arg, phase, world);
	}
	return !world->failure[0];
}
