/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * scale CPU CPU WHAT COUNT [BURST]: two processes, one a processor, that COUNT reliable connections
 * join, and send on each in turn, BURST messages (1) at a time.
 * Prints one figure: messages per second (WHAT = send or write), seconds of a message one way
 * (latency), or bytes of each process's own memory, beside the rings, that a queue pair takes
 * before (idle) and after (active) it has sent and received.
 */
#include "joined.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 1600000 /* six turns of 16,384 connections, 16 messages each */
#define ROUNDS   20000   /* of which each is a message and its answer */

/* Anonymous memory of this process that is in use, bytes: not the rings, which are a file's. */
static uint64_t memory(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %llu kB", &kib) == 1)
			break;
	if (!kib)
		errx(1, "/proc/self/status does not tell RssAnon");
	fclose(status);
	return kib * 1024;
}

static double rate(struct joined *p, enum ibv_wr_opcode opcode)
{
	double start;

	joined_warm_up(p, opcode);
	start = bench_now();
	joined_transfer(p, opcode, MESSAGES);
	return MESSAGES / (bench_now() - start);
}

static void answer(struct joined *p, uint32_t rounds, bool first)
{
	for (uint32_t i = 0; i < rounds; i++) {
		if (first)
			joined_post(p, IBV_WR_SEND);
		while (!joined_poll(p, p->recv_cq))
			;
		joined_post_receive(p, p->wcs[0].wr_id);
		if (!first)
			joined_post(p, IBV_WR_SEND);
		while (!joined_poll(p, p->send_cq))
			;
	}
}

static double latency(struct joined *p)
{
	double start;

	joined_warm_up(p, IBV_WR_SEND);
	answer(p, 2 * p->count, p->leads);
	start = bench_now();
	answer(p, ROUNDS, p->leads);
	return (bench_now() - start) / ROUNDS / 2;
}

/* --- Figures */

static double send_rate(struct joined *p)
{
	joined_prepare(p);
	return rate(p, IBV_WR_SEND);
}

static double write_rate(struct joined *p)
{
	joined_prepare(p);
	return rate(p, IBV_WR_RDMA_WRITE);
}

static double send_latency(struct joined *p)
{
	joined_prepare(p);
	return latency(p);
}

static double idle(struct joined *p)
{
	uint64_t before = memory();

	joined_connect(p);
	return (double)(memory() - before) / p->count;
}

static double active(struct joined *p)
{
	uint64_t before = memory();

	joined_prepare(p);
	for (int turn = 0; turn < 2; turn++, p->leads = !p->leads)
		joined_warm_up(p, IBV_WR_SEND);
	return (double)(memory() - before) / p->count;
}

static const struct figure {
	const char *name;
	double (*measure)(struct joined *p);
} figures[] = {
	{"send", send_rate}, {"write", write_rate}, {"latency", send_latency},
	{"idle", idle},      {"active", active},
};

static const struct figure *find(const char *name)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (!strcmp(figures[i].name, name))
			return &figures[i];
	errx(2, "no figure '%s'", name);
}

int main(int argc, char **argv)
{
	struct bench_cpus cpus;
	struct joined joined = {.burst = 1};

	if (argc != 5 && argc != 6)
		errx(2, "usage: scale CPU CPU WHAT COUNT [BURST]");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	joined.count = (uint32_t)strtoul(argv[4], NULL, 10);
	if (argc == 6)
		joined.burst = (uint32_t)strtoul(argv[5], NULL, 10);
	printf("%.9g\n", joined_run(&cpus, &joined, find(argv[3])->measure));
	return 0;
}
