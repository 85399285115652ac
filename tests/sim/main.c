/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim: two engines over a bad cable, in virtual time.
 *
 * Without --seed it runs --seeds worlds; a world that fails prints the command
 * that runs it again, with a trace.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "world.h"

static const char usage[] =
	"usage: sim [--loss P]... [--seeds N] [--seed N [--pcap FILE] [--quiet]]\n"
	"  --loss P     share of lost frames, 0 to 0.5; default 0, 0.01 and 0.1\n"
	"  --seeds N    how many seeds to run; default 1000\n"
	"  --seed N     run this one alone and print what happens\n"
	"  --pcap FILE  also write its frames to a capture file\n"
	"  --quiet      no trace\n";

#define MAX_LOSSES 8

struct arguments {
	double loss[MAX_LOSSES];
	unsigned n_losses;
	uint64_t seeds;
	uint64_t seed;
	bool one;
	bool quiet;
	const char *pcap;
};

static int wrong(const char *option, const char *value)
{
	fprintf(stderr, "sim: %s: '%s' is no usable value\n%s", option, value, usage);
	return 2;
}

static bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text && *text != '-' && !*end && !errno;
}

static int parse(int argc, char **argv, struct arguments *args)
{
	static const struct option options[] = {
		{"loss", required_argument, NULL, 'l'}, {"seeds", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'}, {"pcap", required_argument, NULL, 'p'},
		{"quiet", no_argument, NULL, 'q'},      {0},
	};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			if (args->n_losses == MAX_LOSSES)
				return wrong("--loss", optarg);
			args->loss[args->n_losses] = strtod(optarg, &end);
			if (*end || !*optarg || !(args->loss[args->n_losses] >= 0) ||
			    args->loss[args->n_losses] > 0.5)
				return wrong("--loss", optarg);
			args->n_losses++;
			break;
		case 'n':
			if (!parse_u64(optarg, &args->seeds))
				return wrong("--seeds", optarg);
			break;
		case 's':
			if (!parse_u64(optarg, &args->seed))
				return wrong("--seed", optarg);
			args->one = true;
			break;
		case 'p': args->pcap = optarg; break;
		case 'q': args->quiet = true; break;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (optind < argc)
		return wrong("argument", argv[optind]);
	return 0;
}

static bool run(uint64_t seed, double loss, struct trace *trace)
{
	const struct options options = {.seed = seed, .loss = loss, .trace = trace};
	static struct world world;

	if (world_run(&world, &options))
		return true;
	fprintf(stderr, "FAILED: %s\n  again: sim --seed %" PRIu64 " --loss %g\n", world.failure,
		seed, loss);
	return false;
}

static int run_one(const struct arguments *args)
{
	struct trace trace = {.text = args->quiet ? NULL : stdout};
	bool ok = true;

	if (args->pcap) {
		trace.pcap = trace_pcap_open(args->pcap);
		if (!trace.pcap) {
			fprintf(stderr, "sim: %s: %s\n", args->pcap, strerror(errno));
			return 2;
		}
	}
	for (unsigned i = 0; i < args->n_losses; i++)
		ok &= run(args->seed, args->loss[i], &trace);
	if (trace.pcap && fclose(trace.pcap)) {
		fprintf(stderr, "sim: %s: %s\n", args->pcap, strerror(errno));
		return 2;
	}
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct arguments args = {.seeds = 1000};
	uint64_t failed = 0;
	int error = parse(argc, argv, &args);

	if (error)
		return error;
	if (!args.n_losses) {
		args.n_losses = 3;
		args.loss[1] = 0.01;
		args.loss[2] = 0.1;
	}
	if (args.one)
		return run_one(&args);
	for (unsigned i = 0; i < args.n_losses; i++) {
		for (uint64_t seed = 1; seed <= args.seeds && failed < 10; seed++)
			failed += !run(seed, args.loss[i], NULL);
		printf("loss %g: %" PRIu64 " seeds\n", args.loss[i], args.seeds);
	}
	return failed ? 1 : 0;
}
