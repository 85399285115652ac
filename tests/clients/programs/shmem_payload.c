/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each PE puts numbers into its neighbour's symmetric memory, gets them back from there, and counts
 * at PE 0 by an atomic; every number is compared.
 */
#include <stdio.h>

#include <shmem.h>

#define NUMBERS (128 * 1024)

static long numbers[NUMBERS], back[NUMBERS];

static long number_of(int pe, int i)
{
	return pe * 1000003L + i;
}

static int wrong(const long *data, int pe)
{
	int count = 0;

	for (int i = 0; i < NUMBERS; i++)
		count += data[i] != number_of(pe, i);
	return count;
}

int main(void)
{
	int pe, pes, bad;
	long *room, *counter;

	shmem_init();
	pe = shmem_my_pe();
	pes = shmem_n_pes();
	room = shmem_malloc(sizeof(numbers));
	counter = shmem_calloc(1, sizeof(*counter));
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = number_of(pe, i);
	shmem_barrier_all();
	shmem_long_put(room, numbers, NUMBERS, (pe + 1) % pes);
	shmem_long_atomic_inc(counter, 0);
	shmem_barrier_all();
	shmem_long_get(back, room, NUMBERS, (pe + 1) % pes);
	bad = wrong(room, (pe + pes - 1) % pes) + wrong(back, pe) +
	      (shmem_long_g(counter, 0) != pes);
	if (!bad)
		printf("PE %d of %d: all is as it was put\n", pe, pes);
	fflush(stdout);
	shmem_barrier_all();
	/* Not shmem_finalize(): Open MPI 4.1.4 crashes in it, over any transport. */
	shmem_global_exit(bad);
}
