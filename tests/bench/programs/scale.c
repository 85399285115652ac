/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * scale CPU CPU WHAT COUNT [BURST]: two processes on one CPU each, with COUNT reliable connections,
 * send on each connection in turn, BURST messages (default 1) at a time. Prints one figure:
 *
 * send, write    messages per second
 * latency        seconds of a message, one way
 * idle, active   bytes of a QP in the process's own memory, without rings, before or after traffic
 * shared         bytes of a QP in memory that the process shares
 * urxed          bytes of a QP in urxed's memory
 */
#include "lib/joined.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 1600000 /* six turns of 16,384 connections, 16 messages each */
#define ROUNDS   20000   /* a round is a message and its answer */

#define RINGS "/memfd:uverbs" /* name of the device's memfd in /proc/self/maps */

static FILE *open_or_end(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		err(1, "%s", path);
	return file;
}

/* A size in /proc/PROCESS/status, bytes. */
static uint64_t status(const char *process, const char *kind)
{
	char path[64], line[256];
	unsigned long long kib;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/status", process);
	file = open_or_end(path);
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, kind, strlen(kind)) &&
			sscanf(line + strlen(kind), ": %llu kB", &kib) == 1;
	if (!found)
		errx(1, "%s does not tell %s", path, kind);
	fclose(file);
	return kib * 1024;
}

/* Anonymous memory of this process, without the rings, which are in a file. */
static uint64_t own_memory(void)
{
	return status("self", "RssAnon");
}

/* Memory of unnamed files other than the rings, which is all urxe's. */
static uint64_t shared_memory(void)
{
	FILE *file = open_or_end("/proc/self/smaps");
	unsigned long long start, end, kib, sum = 0;
	bool counts = false;
	char line[256];

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx-%llx", &start, &end) == 2)
			counts = strstr(line, "/memfd:") && !strstr(line, RINGS);
		else if (counts && sscanf(line, "Rss: %llu kB", &kib) == 1)
			sum += kib;
	}
	fclose(file);
	return sum * 1024;
}

/* Memory of this program's daemon, without the files of programs. */
static uint64_t urxed_memory(void)
{
	const char *run_dir = getenv("URXE_DIR");
	char path[4096], pid[32] = "";
	FILE *file;

	if (!run_dir)
		errx(1, "not under urxe run");
	snprintf(path, sizeof(path), "%s/urxed.pid", run_dir);
	file = open_or_end(path);
	if (fscanf(file, "%31[0-9]", pid) != 1)
		errx(1, "%s has no pid", path);
	fclose(file);
	return status(pid, "RssAnon") + status(pid, "RssShmem");
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

/*
 * Growth of memory per connection. The first value is taken when both devices are open, before
 * either process connects.
 */
static double growth(struct joined *p, uint64_t (*memory)(void))
{
	uint64_t before;

	joined_meet(p);
	before = memory();
	joined_meet(p);
	joined_connect(p);
	return (double)memory() - (double)before;
}

static double idle_growth(struct joined *p)
{
	return growth(p, own_memory) / p->count;
}

static double shared_growth(struct joined *p)
{
	return growth(p, shared_memory) / p->count;
}

static double urxed_growth(struct joined *p)
{
	return growth(p, urxed_memory) / (2 * p->count);
}

static double active_growth(struct joined *p)
{
	uint64_t before = own_memory();

	joined_prepare(p);
	for (int turn = 0; turn < 2; turn++, p->leads = !p->leads)
		joined_warm_up(p, IBV_WR_SEND);
	return (double)(own_memory() - before) / p->count;
}

static const struct figure {
	const char *name;
	double (*measure)(struct joined *p);
} figures[] = {
	{"send", send_rate},     {"write", write_rate},     {"latency", send_latency},
	{"idle", idle_growth},   {"active", active_growth}, {"shared", shared_growth},
	{"urxed", urxed_growth},
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
