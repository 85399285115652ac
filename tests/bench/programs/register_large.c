/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * register_large SIZE prints the seconds in which SIZE bytes are registered, the median of five
 * times. The program has written the memory before, so no page is missing.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "lib/laps.h"
#include "lib/two.h"

#define TIMES 5

static struct ibv_pd *open_device(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

	if (!pd)
		errx(1, "no RDMA device");
	return pd;
}

int main(int argc, char **argv)
{
	struct ibv_pd *pd = open_device();
	struct laps laps = {0};
	uint8_t *memory;
	size_t size;

	if (argc != 2)
		errx(2, "usage: register_large SIZE");
	size = strtoul(argv[1], NULL, 10);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	memset(memory, 1, size);
	for (int i = 0; i < TIMES; i++) {
		double start = bench_now();
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, size,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		if (!mr)
			err(1, "ibv_reg_mr");
		laps_since(&laps, start);
		ibv_dereg_mr(mr);
	}
	printf("%.9g\n", laps_median(&laps));
	return 0;
}
