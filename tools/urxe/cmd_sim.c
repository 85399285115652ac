/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe sim: runs simulations (sim/world.h) from a seed or many, and reports failures. */
#include "urxe/cmd.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/netdev.h>

#include "common/command_line.h"
#include "common/log.h"
#include "sim/scenario/report.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_table.h"
#include "sim/trace.h"
#include "sim/world.h"

#define ERROR_LEN      256
#define PATH_LEN       64
#define MAX_PARAMETERS 64
#define MAX_FAILURES   10

static const char usage[] =
	"usage: urxe sim [OPTION]...\n"
	"Runs one engine per host over a simulated network in virtual time, and checks memory,\n"
	"deliveries, completions, atomics, counters, and that every request ends. The same\n"
	"options give the same output. A failure prints the command that repeats it, and\n"
	"leaves the frames in a capture.\n"
	"\n"
	"  --seeds N          run N seeds, from --seed on; print only those that fail\n"
	"  --masks N          lose every subset of the first N frames (1 to 24) in turn; print\n"
	"                     only those that fail\n"
	"  --pcap FILE        write all frames to a capture\n"
	"  --trace            print every request, frame and delivery\n"
	"  --json             print one JSON object; not with --trace\n"
	"  --table NAME       run a table of scenarios; only --seed and --probe-time have an\n"
	"                     effect on all, --messages and --time on loss and incast:\n";

static const char usage_of_scenario[] =
	"\n"
	"The scenario, with defaults (N: number, P: share, or with %; T: ns, or with us, ms, s;\n"
	"B: bytes, or with K, M, G; R: bit/s, or with k, M, G):\n";

static const char end_of_usage[] =
	"\nExit status: 0 if all checks pass, 1 if not, 2 for a wrong command line.\n";

enum flag {
	FLAG_PARAMETER,
	FLAG_SEEDS,
	FLAG_MASKS,
	FLAG_PCAP,
	FLAG_TRACE,
	FLAG_JSON,
	FLAG_TABLE,
	FLAG_HELP
};

struct arguments {
	struct scenario scenario;
	uint64_t seeds; /* 0 = one seed, with the full report */
	uint64_t masks; /* number of values of --drop-mask for each seed; 0 = one */
	const char *pcap;
	const char *table;
	bool trace;
	bool json;
};

/* --- Arguments */

static void fill_options(struct option options[MAX_PARAMETERS])
{
	static const struct option flags[] = {{"seeds", required_argument, NULL, FLAG_SEEDS},
					      {"masks", required_argument, NULL, FLAG_MASKS},
					      {"pcap", required_argument, NULL, FLAG_PCAP},
					      {"trace", no_argument, NULL, FLAG_TRACE},
					      {"json", no_argument, NULL, FLAG_JSON},
					      {"table", required_argument, NULL, FLAG_TABLE},
					      {"help", no_argument, NULL, FLAG_HELP},
					      {0}};
	unsigned n = 0;

	for (const char *name; (name = scenario_parameter(n)); n++)
		options[n] = (struct option){name, required_argument, NULL, FLAG_PARAMETER};
	memcpy(&options[n], flags, sizeof(flags));
}

static bool parse_seeds(const char *text, uint64_t *seeds)
{
	char *end;

	*seeds = strtoull(text, &end, 10);
	if (*text >= '1' && *text <= '9' && !*end && *seeds <= 1000000000)
		return true;
	log_line("--seeds is a number from 1 to 1000000000, not '%s'", text);
	return false;
}

static bool parse_masks(const char *text, uint64_t *masks)
{
	char *end;
	const unsigned long frames = strtoul(text, &end, 10);

	*masks = UINT64_C(1) << (frames & 31);
	if (*text >= '1' && *text <= '9' && !*end && frames <= 24)
		return true;
	log_line("--masks is a number of frames from 1 to 24, not '%s'", text);
	return false;
}

static bool parse_table(const char *text, const char **table)
{
	*table = text;
	if (scenario_table_exists(text))
		return true;
	log_line("--table has no value '%s'; see urxe sim --help", text);
	return false;
}

static void print_sim_help(void)
{
	fputs(usage, stdout);
	scenario_table_help(stdout);
	fputs(usage_of_scenario, stdout);
	scenario_help(stdout);
	fputs(end_of_usage, stdout);
	exit(0);
}

static bool apply_option(struct arguments *args, int opt, const char *name)
{
	char error[ERROR_LEN];

	switch (opt) {
	case FLAG_SEEDS: return parse_seeds(optarg, &args->seeds);
	case FLAG_MASKS: return parse_masks(optarg, &args->masks);
	case FLAG_PCAP: args->pcap = optarg; return true;
	case FLAG_TRACE: args->trace = true; return true;
	case FLAG_TABLE: return parse_table(optarg, &args->table);
	case FLAG_JSON: args->json = true; return true;
	case FLAG_HELP: print_sim_help(); return true;
	default: break;
	}
	if (scenario_set(&args->scenario, name, optarg, error, sizeof(error)))
		return true;
	log_line("%s", error);
	return false;
}

static bool check_combination(const struct arguments *args)
{
	if ((args->seeds || args->masks) && (args->pcap || args->trace || args->json)) {
		log_line("--seeds and --masks go with neither --pcap, --trace nor --json");
		return false;
	}
	if (args->trace && args->json) {
		log_line("--trace does not go with --json");
		return false;
	}
	if (args->table &&
	    (args->seeds || args->masks || args->pcap || args->trace || args->json)) {
		log_line("--table goes with neither --seeds, --masks, --pcap, --trace nor --json");
		return false;
	}
	return true;
}

static bool parse_sim_arguments(int argc, char **argv, struct arguments *args)
{
	struct option options[MAX_PARAMETERS] = {0};
	int opt, index, at = optind;
	char error[ERROR_LEN];

	fill_options(options);
	for (; (opt = getopt_long(argc, argv, ":", options, &index)) != -1; at = optind) {
		if (opt == ':' || opt == '?') {
			log_bad_option("urxe sim", opt, argv, at);
			return false;
		}
		if (!apply_option(args, opt, options[index].name))
			return false;
	}
	if (optind < argc) {
		log_line("sim takes no argument %s; see urxe sim --help", argv[optind]);
		return false;
	}
	if (!check_combination(args))
		return false;
	if (scenario_check(&args->scenario, error, sizeof(error)))
		return true;
	log_line("%s", error);
	return false;
}

/* --- Running */

static void report_finished_phase(void *arg, enum phase phase, struct world *world)
{
	FILE *to = arg;

	if (to)
		report_phase(world, phase, to);
}

static bool open_pcap(const char *path, struct trace *trace)
{
	char error[ERROR_LEN];

	if (!netdev_pcap_create(path, &trace->pcap, error, sizeof(error)))
		return true;
	log_line("%s", error);
	return false;
}

static bool close_pcap(const char *path, struct trace *trace)
{
	const bool whole = !netdev_pcap_status(trace->pcap);

	if (!whole)
		log_line("%s: %s", path, netdev_pcap_error(trace->pcap));
	netdev_close(trace->pcap);
	return whole;
}

/*
 * Repeats the simulation, and captures the frames of the two hosts that failed, or of all hosts, in
 * the file `path`. False: the file could not be written; logged.
 */
static bool capture_failure(const struct world *failed, const char *path)
{
	const bool all = failed->failed_host[0] >= failed->n_hosts;
	struct trace trace = {.host = {all ? TRACE_ALL : failed->failed_host[0],
				       all ? TRACE_ALL : failed->failed_host[1]}};
	struct world world;

	if (!open_pcap(path, &trace))
		return false;
	world_run(&world, &failed->scenario, &trace, report_finished_phase, NULL);
	world_free(&world);
	return close_pcap(path, &trace);
}

/* Prints the failure and the command that repeats it; sets path to the capture's name, or "". */
static void explain_failure(const struct world *world, const struct arguments *args,
			    char path[PATH_LEN])
{
	FILE *to = args->json ? stderr : stdout;
	const char *pcap = args->pcap;
	char mask[20] = "";

	if (world->scenario.drop_mask)
		snprintf(mask, sizeof(mask), "%" PRIx64, world->scenario.drop_mask);
	if (!pcap) {
		snprintf(path, PATH_LEN, "urxe-sim-%" PRIu64 "%s%s.pcap", world->scenario.seed,
			 mask[0] ? "-" : "", mask);
		if (capture_failure(world, path))
			pcap = path;
		else
			path[0] = 0;
	}
	fprintf(to, "FAILED    %s (at %" PRIu64 " ns)\n          again: urxe sim", world->failure,
		world->now);
	scenario_print(&world->scenario, to);
	if (world->scenario.seed == scenario_default.seed)
		fprintf(to, " --seed %" PRIu64, world->scenario.seed);
	fprintf(to, "\n          frames: %s\n", pcap ? pcap : "none");
}

static int run_single(const struct arguments *args)
{
	struct trace trace = {.text = args->trace ? stdout : NULL, .host = {TRACE_ALL, TRACE_ALL}};
	char path[PATH_LEN] = "";
	struct world world;
	bool ok;

	if (args->pcap && !open_pcap(args->pcap, &trace))
		return STATUS_FAILED;
	ok = world_run(&world, &args->scenario, &trace, report_finished_phase,
		       args->json ? NULL : stdout);
	if (!ok)
		explain_failure(&world, args, path);
	if (args->json)
		report_json(&world, args->pcap ? args->pcap : path[0] ? path : NULL, stdout);
	world_free(&world);
	if (args->pcap)
		ok &= close_pcap(args->pcap, &trace);
	return ok ? 0 : STATUS_FAILED;
}

/* Sums over all worlds that were simulated. */
struct tally {
	uint64_t worlds, failed, requests, frames;
};

/* Runs a scenario and adds its counts to the sums. False: MAX_FAILURES worlds have failed. */
static bool run_tallied(const struct scenario *scenario, const struct arguments *args,
			struct tally *tally)
{
	struct world world;
	char path[PATH_LEN];

	tally->worlds++;
	if (!world_run(&world, scenario, NULL, report_finished_phase, NULL)) {
		explain_failure(&world, args, path);
		tally->failed++;
	}
	tally->frames += world.fabric.counters.sent;
	tally->requests += world.requests;
	world_free(&world);
	return tally->failed < MAX_FAILURES;
}

static int run_many(const struct arguments *args)
{
	struct scenario scenario = args->scenario;
	struct tally tally = {0};
	bool go_on = true;

	for (uint64_t n = 0; n < (args->seeds ? args->seeds : 1) && go_on; n++, scenario.seed++)
		for (uint64_t mask = 0; mask < (args->masks ? args->masks : 1) && go_on; mask++) {
			scenario.drop_mask = args->scenario.drop_mask | mask;
			go_on = run_tallied(&scenario, args, &tally);
		}
	printf("%" PRIu64 " worlds, %" PRIu64 " failed; %" PRIu64 " requests, %" PRIu64 " frames\n",
	       tally.worlds, tally.failed, tally.requests, tally.frames);
	return tally.failed ? STATUS_FAILED : 0;
}

int cmd_sim(int argc, char **argv)
{
	struct arguments args = {.scenario = scenario_default};

	if (!parse_sim_arguments(argc, argv, &args))
		return STATUS_USAGE;
	if (args.table)
		return scenario_table_run(args.table, &args.scenario, stdout) ? 0 : STATUS_FAILED;
	return args.seeds || args.masks ? run_many(&args) : run_single(&args);
}
