/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/scenario/scenario_table.h"

#include <inttypes.h>
#include <string.h>

#include <rxe/cong.h>

#include "sim/scenario/report.h"
#include "sim/world.h"

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void ignore_phase(void *arg, enum phase phase, struct world *world)
{
	(void)arg, (void)phase, (void)world;
}

/* Runs the scenario; `cells` prints the results. False: a check failed, and its text is printed
 * instead. */
static bool run_scenario(const struct scenario *scenario,
			 void (*cells)(const struct world *, FILE *), FILE *to)
{
	struct world world;
	const bool ok = world_run(&world, scenario, NULL, ignore_phase, NULL);

	if (ok)
		cells(&world, to);
	else
		fprintf(to, " failed: %s |", world.failure);
	fflush(to);
	world_free(&world);
	return ok;
}

/* --- Goodput over loss. */

/* Prints "-" if all messages were done before the measurement began. */
static void goodput_cell(const struct world *world, FILE *to)
{
	if (world->warm_until > world->warm_from)
		fprintf(to, " %.3f |", report_goodput(world) / 1e9);
	else
		fputs(" - |", to);
}

/* Returns a scenario in which host 1 writes to host 0. */
static struct scenario loss_scenario(const struct scenario *given)
{
	struct scenario s = scenario_default;

	s.seed = given->seed;
	s.probe_time = given->probe_time;
	s.messages = scenario_or(given->messages, 400);
	s.time = given->time < scenario_default.time ? given->time : 10000 * MS;
	s.warmup = s.time / 3 < 2 * MS ? s.time / 3 : 2 * MS;
	s.qps = 1;
	s.pattern = PATTERN_PAIRS;
	s.traffic = TRAFFIC_WRITE;
	s.size = MIB;
	s.timeout = 14;
	s.delay = 10 * US;
	s.rate = UINT64_C(25000000000);
	s.max_losses = 0;
	return s;
}

static bool run_loss(const struct scenario *given, FILE *to)
{
	static const double losses[] = {0, 0.0001, 0.001, 0.003, 0.01, 0.03, 0.1};
	static const uint8_t stricts[] = {STRICT_NONE, STRICT_ALL, STRICT_OPENERS, STRICT_TARGETS};
	struct scenario s = loss_scenario(given);
	bool ok = true;

	for (s.mtu = 1024; s.mtu <= 4096; s.mtu *= 4) {
		fprintf(to,
			"Goodput in Gb/s, RC WRITE of 1 MiB, round trip 20 us, 25 Gb/s, MTU "
			"%" PRIu64 ", local ACK timeout 14\n\n"
			"| loss | urxe to urxe | go-back-N on both sides | go-back-N requester | "
			"go-back-N responder |\n|---|---|---|---|---|\n",
			s.mtu);
		for (unsigned i = 0; i < N(losses); i++) {
			s.loss = losses[i];
			fprintf(to, "| %g %% |", 100 * s.loss);
			for (unsigned k = 0; k < N(stricts); k++) {
				s.go_back_n = stricts[k];
				ok &= run_scenario(&s, goodput_cell, to);
			}
			fputc('\n', to);
		}
		fputc('\n', to);
	}
	return ok;
}

/* --- Incast. */

static void incast_cells(const struct world *world, FILE *to)
{
	struct urxe_counters sum;

	world_sum_counters(world, &sum);
	fprintf(to, " %.1f | %.1f | %.4f | %.3f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |",
		world->hot_mean / KIB, (double)world->hot_max / KIB, report_fairness(world),
		report_goodput(world) / 1e9, sum.event[URXE_EVENT_CNP_SENT],
		world->fabric.counters.tail_drops, sum.event[URXE_EVENT_RETRANSMIT]);
}

static struct scenario incast_scenario(const struct scenario *given)
{
	struct scenario s = loss_scenario(given);

	s.nodes = 65;
	s.pattern = PATTERN_INCAST;
	s.size = 64 * KIB;
	s.mtu = 1024;
	s.messages = scenario_or(given->messages, 100000);
	s.time = given->time < scenario_default.time ? given->time : 300 * MS;
	s.warmup = s.time / 3;
	/* The run is longer than the timeout, but no longer than the retries last. */
	s.timeout = 12;
	s.ecn_min = 5 * KIB;
	s.ecn_max = 200 * KIB;
	s.ecn_share = 0.01;
	return s;
}

static bool run_incast(const struct scenario *given, FILE *to)
{
	static const uint64_t queues[] = {0, MIB};
	static const char *const names[] = {"dcqcn", "none"};
	static const uint8_t controls[] = {URXE_CONGESTION_DCQCN, URXE_CONGESTION_NONE};
	struct scenario s = incast_scenario(given);
	bool ok = true;

	fprintf(to,
		"64 hosts write 64 KiB messages to one, 25 Gb/s, round trip 20 us, MTU 1024\n\n"
		"| queue | control | mean queue, KiB | longest, KiB | fairness (Jain) | goodput, "
		"Gb/s | CNPs | drops | sent again |\n|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < N(queues); i++)
		for (unsigned k = 0; k < N(controls); k++) {
			s.queue = queues[i];
			s.congestion = controls[k];
			fprintf(to, "| %s | %s |", s.queue ? "1 MiB" : "no limit", names[k]);
			ok &= run_scenario(&s, incast_cells, to);
			fputc('\n', to);
		}
	return ok;
}

/* --- Blackout. */

/* Returns a scenario in which host 1 writes to host 0, which migrates once. */
static struct scenario blackout_scenario(const struct scenario *given)
{
	struct scenario s = loss_scenario(given);

	s.messages = 200;
	s.time = scenario_default.time;
	s.warmup = 0;
	s.size = 64 * KIB;
	s.mtu = 1024;
	s.migrate = 1;
	s.movers = MOVERS_TARGETS;
	s.hearers = HEARERS_NONE;
	return s;
}

/*
 * Prints the longest time in ms that host 0 may be frozen for its migration without an error of the
 * writer's requests, found by bisection, to a two-hundredth of the time after which the writer's
 * requester repeats a packet. A run may fail only because the writer runs out of retries. False: a
 * run failed otherwise.
 */
static bool blackout_cell(struct scenario s, FILE *to)
{
	/* An engine's local ACK timeout is three times IBA's 4.096 us << the exponent. */
	const uint64_t timeout = UINT64_C(12288) << s.timeout;
	uint64_t survived = 1, fatal = 2 * timeout * (s.retries + 1);
	struct world world;
	bool ok = true;

	while (ok && fatal - survived > timeout / 200) {
		s.pause = survived + (fatal - survived) / 2;
		if (world_run(&world, &s, NULL, ignore_phase, NULL))
			survived = s.pause;
		else if (world.failed_status == URXE_WC_RETRY_EXC_ERR)
			fatal = s.pause;
		else
			ok = false;
		if (!ok)
			fprintf(to, " failed: %s |", world.failure);
		world_free(&world);
	}
	if (ok)
		fprintf(to, " %.1f |", (double)survived / MS);
	fflush(to);
	return ok;
}

static bool run_blackout(const struct scenario *given, FILE *to)
{
	static const uint8_t timeouts[] = {8, 10, 12, 14, 16, 18};
	static const uint8_t retries[] = {1, 3, 5, 7};
	struct scenario s = blackout_scenario(given);
	bool ok = true;

	fprintf(to, "Longest absence of the responder, ms, RC WRITE of 64 KiB, round trip 20 us\n\n"
		    "| local ACK timeout | 1 retry | 3 retries | 5 retries | 7 retries |\n"
		    "|---|---|---|---|---|\n");
	for (unsigned i = 0; i < N(timeouts); i++) {
		s.timeout = timeouts[i];
		fprintf(to, "| %u |", timeouts[i]);
		for (unsigned k = 0; k < N(retries); k++) {
			s.retries = retries[k];
			ok &= blackout_cell(s, to);
		}
		fputc('\n', to);
	}
	return ok;
}

/* --- Pause. */

#define ABSENCE (100 * MS)

/* Time until all messages are done, ns; 0: a check failed. */
static uint64_t time_of(const struct scenario *scenario)
{
	struct world world;
	const bool ok = world_run(&world, scenario, NULL, ignore_phase, NULL);
	const uint64_t until = world.warm_until;

	world_free(&world);
	return ok ? until : 0;
}

/* Prints by how much more than its own length the absence prolongs the run, ms. False: a check
 * failed. */
static bool pause_cell(struct scenario s, FILE *to)
{
	const uint64_t with = time_of(&s);
	uint64_t without;

	s.migrate = 0;
	without = time_of(&s);
	if (with && without)
		fprintf(to, " %.1f |", ((double)with - (double)without - (double)ABSENCE) / MS);
	else
		fprintf(to, " failed |");
	fflush(to);
	return with && without;
}

static bool run_pause(const struct scenario *given, FILE *to)
{
	/* Local ACK timeouts with which the retries last longer than the absence: 11 and more. */
	static const uint8_t timeouts[] = {11, 12, 14, 16, 18};
	static const uint8_t hearers[] = {HEARERS_NONE, HEARERS_PEERS, HEARERS_SELF};
	static const uint8_t stricts[] = {STRICT_NONE, STRICT_OPENERS};
	struct scenario s = blackout_scenario(given);
	bool ok = true;

	s.pause = ABSENCE;
	fprintf(to, "Pause beyond an absence of 100 ms of the responder, ms, RC WRITE of 64 KiB, "
		    "round trip 20 us\n\n"
		    "| local ACK timeout | urxe, nobody hears | the peer hears | the host itself "
		    "hears | go-back-N peer, nobody hears | the peer hears | the host itself "
		    "hears |\n|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < N(timeouts); i++) {
		s.timeout = timeouts[i];
		fprintf(to, "| %u |", timeouts[i]);
		for (unsigned k = 0; k < N(stricts); k++)
			for (unsigned n = 0; n < N(hearers); n++) {
				s.go_back_n = stricts[k];
				s.hearers = hearers[n];
				ok &= pause_cell(s, to);
			}
		fputc('\n', to);
	}
	return ok;
}

/* --- The list. */

static const struct table {
	const char *name;
	bool (*run)(const struct scenario *given, FILE *to);
	const char *text;
} tables[] = {
#define TABLE(name, text) {#name, run_##name, text},
	SCENARIO_TABLE_LIST(TABLE)
#undef TABLE
};

static const struct table *find_table(const char *name)
{
	for (unsigned i = 0; i < N(tables); i++)
		if (!strcmp(tables[i].name, name))
			return &tables[i];
	return NULL;
}

bool scenario_table_exists(const char *name)
{
	return find_table(name);
}

bool scenario_table_run(const char *name, const struct scenario *given, FILE *to)
{
	const struct table *table = find_table(name);

	return table && table->run(given, to);
}

void scenario_table_help(FILE *to)
{
	for (unsigned i = 0; i < N(tables); i++)
		fprintf(to, "  %-20s %-8s %s\n", "", tables[i].name, tables[i].text);
}
