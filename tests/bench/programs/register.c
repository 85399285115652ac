/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * register CPU CPU SIZE prints the seconds in which a thread registers SIZE bytes of fresh memory,
 * the median of many such pieces, while another thread of the program polls an empty completion
 * queue on the other processor.
 */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "lib/laps.h"
#include "lib/two.h"

#define PIECES 200

static struct bench_cpus cpus;
static struct ibv_cq *cq;
static atomic_bool polls, ends;

static void *poll_empty(void *unused)
{
	struct ibv_wc wc;

	bench_pin(cpus.other);
	while (!atomic_load(&ends)) {
		if (ibv_poll_cq(cq, 1, &wc))
			errx(1, "a completion of nothing");
		atomic_store(&polls, true);
	}
	return unused;
}

static struct ibv_pd *open_device(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (!cq)
		errx(1, "no RDMA device");
	return pd;
}

static double register_pieces(struct ibv_pd *pd, size_t size)
{
	uint8_t *memory = mmap(NULL, PIECES * size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct laps laps;

	if (memory == MAP_FAILED)
		err(1, "mmap");
	laps_start(&laps);
	for (size_t i = 0; i < PIECES; i++) {
		if (!ibv_reg_mr(pd, memory + i * size, size,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE))
			err(1, "ibv_reg_mr");
		laps_mark(&laps);
	}
	return laps_median(&laps);
}

int main(int argc, char **argv)
{
	struct ibv_pd *pd = open_device();
	pthread_t thread;
	double seconds;

	if (argc != 4)
		errx(2, "usage: register CPU CPU SIZE");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	bench_pin(cpus.own);
	if (pthread_create(&thread, NULL, poll_empty, NULL))
		errx(1, "pthread_create");
	while (!atomic_load(&polls))
		;
	seconds = register_pieces(pd, strtoul(argv[3], NULL, 10));
	atomic_store(&ends, true);
	pthread_join(thread, NULL);
	printf("%.9g\n", seconds);
	return 0;
}
