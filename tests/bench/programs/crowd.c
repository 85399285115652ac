/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * crowd CPU CPU WHAT PAIRS: PAIRS pairs of processes on one host, each pair with one reliable
 * connection, run at the same time. WHAT = send prints the total rate of 8-byte messages per
 * second. WHAT = memory prints the memory of a process in bytes, with its share of shared memory
 * (PSS).
 */
#include "lib/joined.h"

#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 400000 /* of all pairs */
#define MOST     1024   /* pairs */

/* Memory that all processes share. */
static struct crowd {
	pthread_barrier_t barrier;
	uint32_t pairs;
	_Atomic uint64_t memory; /* of all processes, KiB */
} * crowd;

/* A barrier of all processes of all pairs and of this program. */
static void meet(void)
{
	pthread_barrier_wait(&crowd->barrier);
}

/* Kills all processes after a failure, because they would wait at the barrier for ever. */
static void fail(int signal)
{
	(void)signal;
	_exit(1);
}

/* Pss of this process: pages that n processes share count as 1/n. KiB. */
static uint64_t memory(void)
{
	FILE *rollup = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kib = 0;
	char line[256];

	while (rollup && fgets(line, sizeof(line), rollup))
		if (sscanf(line, "Pss: %llu kB", &kib) == 1)
			break;
	if (!kib)
		errx(1, "/proc/self/smaps_rollup does not tell Pss");
	fclose(rollup);
	return kib;
}

/* --- A pair */

static double take_part(struct joined *p)
{
	joined_prepare(p);
	joined_warm_up(p, IBV_WR_SEND);
	meet();
	joined_transfer(p, IBV_WR_SEND, MESSAGES / crowd->pairs);
	meet();
	crowd->memory += memory();
	signal(SIGCHLD, SIG_DFL);
	meet();
	return 0;
}

static void pair(void *cpus)
{
	struct joined joined = {.count = 1, .burst = 1};

	joined_run(cpus, &joined, take_part);
}

/* --- All pairs */

static void make(uint32_t pairs)
{
	pthread_barrierattr_t attr;

	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (crowd == MAP_FAILED)
		err(1, "cannot share memory");
	crowd->pairs = pairs;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&crowd->barrier, &attr, 2 * pairs + 1);
	signal(SIGCHLD, fail);
}

/* Half of the pairs send from the first CPU, and half from the second. */
static void start(struct bench_cpus *cpus)
{
	struct bench_cpus turned = {.own = cpus->other, .other = cpus->own};

	for (uint32_t i = 0; i < crowd->pairs; i++)
		bench_child(cpus, pair, i % 2 ? &turned : cpus);
}

static void end(void)
{
	int status;

	while (wait(&status) > 0)
		if (status)
			errx(1, "a pair: %#x", status);
}

/* Seconds that all pairs take for MESSAGES. */
static double measure(void)
{
	double begun, seconds;

	meet();
	begun = bench_now();
	meet();
	seconds = bench_now() - begun;
	signal(SIGCHLD, SIG_DFL);
	meet();
	end();
	return seconds;
}

int main(int argc, char **argv)
{
	struct bench_cpus cpus;
	uint32_t pairs;
	double seconds;

	pairs = argc == 5 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
	if (!pairs || pairs > MOST || (strcmp(argv[3], "send") && strcmp(argv[3], "memory")))
		errx(2, "usage: crowd CPU CPU send|memory PAIRS, of which 1 to %d", MOST);
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	make(pairs);
	start(&cpus);
	seconds = measure();
	printf("%.9g\n", strcmp(argv[3], "send") ? (double)crowd->memory * 1024 / (2 * pairs)
						 : MESSAGES / seconds);
	return 0;
}
