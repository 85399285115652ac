/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/scenario/report.h"

#include <inttypes.h>

#include "common/printable.h"

#define SECOND 1e9

double report_goodput(const struct world *world)
{
	const double time = (double)(world->warm_until - world->warm_from) / SECOND;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++)
			bytes += world->conn[i].stream[side].counted;
	return time > 0 ? (double)bytes * 8 / time : 0;
}

double report_fairness(const struct world *world)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			const struct stream *stream = &world->conn[i].stream[side];
			const double counted = (double)stream->counted;

			if (!stream->posted)
				continue;
			n++;
			sum += counted;
			squares += counted * counted;
		}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}

static uint32_t count_type(const struct world *world, uint8_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < world->n_conns; i++)
		n += world->conn[i].attr.type == type;
	return n;
}

static uint64_t count_completed_bytes(const struct world *world)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < world->n_conns; i++)
		bytes += world->conn[i].stream[0].bytes + world->conn[i].stream[1].bytes;
	return bytes;
}

/* --- As text */

static void print_setup(const struct world *world, FILE *to)
{
	fprintf(to, "setup     seed %" PRIu64 ": %u hosts, connections: %u RC, %u UC, %u UD; ",
		world->scenario.seed, world->n_hosts, count_type(world, URXE_QPT_RC),
		count_type(world, URXE_QPT_UC), count_type(world, URXE_QPT_UD));
	fprintf(to, "%" PRIu64 " ns from host to host, ", world->fabric.delay);
	if (world->fabric.rate)
		fprintf(to, "%g Gb/s\n", (double)world->fabric.rate / 1e9);
	else
		fputs("no rate limit\n", to);
}

static void print_traffic(const struct world *world, FILE *to)
{
	const struct fabric_counters *c = &world->fabric.counters;

	fprintf(to,
		"traffic   %" PRIu64 " requests, %" PRIu64 " bytes, done at %.9f s; %" PRIu64
		" frames: %" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64 " reordered, %" PRIu64
		" corrupted, %" PRIu64 " dropped by full queues, %" PRIu64 " marked\n",
		world->requests, count_completed_bytes(world), (double)world->now / SECOND, c->sent,
		c->lost, c->duplicated, c->reordered, c->corrupted, c->tail_drops, c->marked);
	if (world->scenario.migrate)
		fprintf(to,
			"migrate   %" PRIu64 " times a host moved, with %" PRIu64
			" bytes of state; %" PRIu64 " frames missed their host\n",
			world->migrate.n_moves, world->migrate.bytes, world->migrate.missed);
	if (world->scenario.record)
		fprintf(to,
			"record    %" PRIu64 " recordings were replayed: %" PRIu64
			" calls, %" PRIu64 " bytes\n",
			world->recordings.replayed, world->recordings.n_calls,
			world->recordings.n_bytes);
	if (scenario_is_bulk(&world->scenario))
		fprintf(to, "goodput   %.4f Gb/s, fairness %.4f\n", report_goodput(world) / 1e9,
			report_fairness(world));
	if (world->fabric.rate)
		fprintf(to,
			"queue     longest queue: to host %u, mean %.0f, maximum %" PRIu64
			" bytes\n",
			world->hot_host, world->hot_mean, world->hot_max);
}

static void print_engine_counters(const struct world *world, FILE *to)
{
	struct urxe_counters sum;
	const char *separator = " ";

	world_sum_counters(world, &sum);
	fputs("counters ", to);
	for (unsigned i = 0; i < URXE_EVENT_COUNT; i++) {
		if (!sum.event[i])
			continue;
		fprintf(to, "%s%s %" PRIu64, separator, urxe_event_name(i), sum.event[i]);
		separator = ", ";
	}
	for (unsigned i = 0; i < URXE_DROP_COUNT; i++)
		if (sum.drop[i])
			fprintf(to, ", dropped %s %" PRIu64, urxe_drop_name(i), sum.drop[i]);
	fputc('\n', to);
}

void report_phase(const struct world *world, enum phase phase, FILE *to)
{
	switch (phase) {
	case PHASE_SETUP: print_setup(world, to); break;
	case PHASE_TRAFFIC: print_traffic(world, to); break;
	case PHASE_QUIET:
		fprintf(to, "quiet     no frame, timer or completion is left at %.9f s\n",
			(double)world->now / SECOND);
		break;
	case PHASE_CHECK:
		print_engine_counters(world, to);
		fprintf(to,
			"check     memory, deliveries, completions, %u shared atomics and counters "
			"agree\n",
			world->n_atomics);
		break;
	}
	fflush(to);
}

/* --- As JSON */

static void print_json_counters(const struct world *world, FILE *to)
{
	struct urxe_counters sum;

	world_sum_counters(world, &sum);
	fputs(" \"events\": {", to);
	for (unsigned i = 0; i < URXE_EVENT_COUNT; i++)
		fprintf(to, "%s\"%s\": %" PRIu64, i ? ", " : "", urxe_event_name(i), sum.event[i]);
	fputs("},\n \"drops\": {", to);
	for (unsigned i = 1; i < URXE_DROP_COUNT; i++)
		fprintf(to, "%s\"%s\": %" PRIu64, i > 1 ? ", " : "", urxe_drop_name(i),
			sum.drop[i]);
	fputs("},\n", to);
}

static void print_json_network(const struct world *world, FILE *to)
{
	const struct fabric_counters *c = &world->fabric.counters;

	fprintf(to,
		" \"network\": {\"delay_ns\": %" PRIu64 ", \"rate_bps\": %" PRIu64
		", \"frames\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"lost\": %" PRIu64
		", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64 ", \"corrupted\": %" PRIu64
		", \"tail_drops\": %" PRIu64 ", \"marked\": %" PRIu64 ", \"delivered\": %" PRIu64
		", \"queue_host\": %u, \"queue_mean\": %.1f, \"queue_max\": %" PRIu64 "},\n",
		world->fabric.delay, world->fabric.rate, c->sent, c->bytes, c->lost, c->duplicated,
		c->reordered, c->corrupted, c->tail_drops, c->marked, world->received,
		world->hot_host, world->hot_mean, world->hot_max);
}

static void print_json_text(const char *text, FILE *to)
{
	if (text)
		printable_json(to, text);
	else
		fputs("null", to);
}

void report_json(const struct world *world, const char *pcap, FILE *to)
{
	fputs("{\"scenario\": {", to);
	scenario_print_json(&world->scenario, to);
	fprintf(to,
		"},\n \"hosts\": %u, \"rc\": %u, \"uc\": %u, \"ud\": %u, \"requests\": %" PRIu64
		", \"completed_bytes\": %" PRIu64 ", \"ended_ns\": %" PRIu64
		", \"goodput_bps\": %.0f, \"fairness\": %.6f, \"shared_atomics\": %u, \"moves\": "
		"%" PRIu64 ", \"missed\": %" PRIu64 ",\n",
		world->n_hosts, count_type(world, URXE_QPT_RC), count_type(world, URXE_QPT_UC),
		count_type(world, URXE_QPT_UD), world->requests, count_completed_bytes(world),
		world->now, report_goodput(world), report_fairness(world), world->n_atomics,
		world->migrate.n_moves, world->migrate.missed);
	print_json_network(world, to);
	print_json_counters(world, to);
	fputs(" \"failure\": ", to);
	print_json_text(world->failure[0] ? world->failure : NULL, to);
	fputs(", \"pcap\": ", to);
	print_json_text(pcap, to);
	fputs("}\n", to);
}
