/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_collectives [REPETITIONS [NAME]]: repeats each collective operation of MPI, or only NAME, in
 * a short and a long size, and checks the result of each repetition. Rank 0 prints for each size:
 * name, bytes that a rank contributes, mean time in microseconds. Repetitions are separated by
 * barriers outside the measured time, so no rank starts the next one early.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define MAX_RANKS    64
#define MAX_ELEMENTS 8192 /* longs that a rank contributes */
#define WARM_UP      20   /* exchanges before the first measurement, in which the ranks connect */

static const int sizes[] = {1, MAX_ELEMENTS};
static int rank, ranks, repetitions;
static long *out, *in;
static int counts[MAX_RANKS], offsets[MAX_RANKS]; /* of MPI_Alltoallv */

/* Element i of the data that rank `from` sends to rank `to` in this repetition. */
static long value(int from, int to, int i, int round)
{
	return from * 1000003L + to * 10007L + i * 31L + round;
}

static void fill(long *data, int to, int n, int round)
{
	for (int i = 0; i < n; i++)
		data[i] = value(rank, to, i, round);
}

static void expect(const char *what, int i, long got, long wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "rank %d: %s: element %d is %ld, not %ld\n", rank, what, i, got, wanted);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect_from(const char *what, const long *data, int from, int to, int n, int round)
{
	for (int i = 0; i < n; i++)
		expect(what, i, data[i], value(from, to, i, round));
}

/* The sum over the first `members` ranks. */
static void expect_sum(const char *what, const long *data, int members, int to, int n, int round)
{
	for (int i = 0; i < n; i++) {
		long sum = members * value(0, to, i, round);

		expect(what, i, data[i], sum + 1000003L * members * (members - 1) / 2);
	}
}

static int root_of(int round)
{
	return round % ranks;
}

/* --- Data to send. */

static void fill_for_all(int n, int round)
{
	fill(out, 0, n, round);
}

static void fill_for_each(int n, int round)
{
	for (int to = 0; to < ranks; to++)
		fill(out + (size_t)to * n, to, n, round);
}

static void fill_at_root(int n, int round)
{
	if (rank == root_of(round))
		fill(in, 0, n, round);
}

/* The parts of all ranks lie in reverse order. */
static void fill_reversed(int n, int round)
{
	for (int to = 0; to < ranks; to++) {
		counts[to] = n;
		offsets[to] = (ranks - 1 - to) * n;
		fill(out + offsets[to], to, n, round);
	}
}

/* --- Calls. */

static void barrier(int n, int round)
{
	(void)n, (void)round;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int n, int round)
{
	MPI_Bcast(in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD);
}

static void reduce(int n, int round)
{
	MPI_Reduce(out, in, n, MPI_LONG, MPI_SUM, root_of(round), MPI_COMM_WORLD);
}

static void allreduce(int n, int round)
{
	(void)round;
	MPI_Allreduce(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(int n, int round)
{
	(void)round;
	MPI_Scan(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int n, int round)
{
	(void)round;
	MPI_Reduce_scatter_block(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int n, int round)
{
	MPI_Gather(out, n, MPI_LONG, in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD);
}

static void scatter(int n, int round)
{
	MPI_Scatter(out, n, MPI_LONG, in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD);
}

static void allgather(int n, int round)
{
	(void)round;
	MPI_Allgather(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
}

static void alltoall(int n, int round)
{
	(void)round;
	MPI_Alltoall(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
}

static void alltoallv(int n, int round)
{
	(void)n, (void)round;
	MPI_Alltoallv(out, counts, offsets, MPI_LONG, in, counts, offsets, MPI_LONG,
		      MPI_COMM_WORLD);
}

/* --- Checks of the received data. */

static void expect_nothing(const char *name, int n, int round)
{
	(void)name, (void)n, (void)round;
}

static void expect_from_root(const char *name, int n, int round)
{
	expect_from(name, in, root_of(round), 0, n, round);
}

static void expect_own_from_root(const char *name, int n, int round)
{
	expect_from(name, in, root_of(round), rank, n, round);
}

static void expect_sum_at_root(const char *name, int n, int round)
{
	if (rank == root_of(round))
		expect_sum(name, in, ranks, 0, n, round);
}

static void expect_sum_at_all(const char *name, int n, int round)
{
	expect_sum(name, in, ranks, 0, n, round);
}

static void expect_prefix_sum(const char *name, int n, int round)
{
	expect_sum(name, in, rank + 1, 0, n, round);
}

static void expect_own_sum(const char *name, int n, int round)
{
	expect_sum(name, in, ranks, rank, n, round);
}

static void expect_from_all(const char *name, int n, int round)
{
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + (size_t)from * n, from, 0, n, round);
}

static void expect_from_all_at_root(const char *name, int n, int round)
{
	if (rank == root_of(round))
		expect_from_all(name, n, round);
}

static void expect_own_from_all(const char *name, int n, int round)
{
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + (size_t)from * n, from, rank, n, round);
}

static void expect_own_reversed(const char *name, int n, int round)
{
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + offsets[from], from, rank, n, round);
}

static const struct collective {
	const char *name;
	void (*fill)(int n, int round);
	void (*call)(int n, int round);
	void (*check)(const char *name, int n, int round);
} collectives[] = {
	{"Barrier", fill_for_all, barrier, expect_nothing},
	{"Bcast", fill_at_root, bcast, expect_from_root},
	{"Reduce", fill_for_all, reduce, expect_sum_at_root},
	{"Allreduce", fill_for_all, allreduce, expect_sum_at_all},
	{"Scan", fill_for_all, scan, expect_prefix_sum},
	{"Reduce_scatter_block", fill_for_each, reduce_scatter, expect_own_sum},
	{"Gather", fill_for_all, gather, expect_from_all_at_root},
	{"Scatter", fill_for_each, scatter, expect_own_from_root},
	{"Allgather", fill_for_all, allgather, expect_from_all},
	{"Alltoall", fill_for_each, alltoall, expect_own_from_all},
	{"Alltoallv", fill_reversed, alltoallv, expect_own_reversed},
};

/* Returns the seconds that the call took in this rank. */
static double repeat(const struct collective *c, int n, int round)
{
	double start, end;

	c->fill(n, round);
	start = MPI_Wtime();
	c->call(n, round);
	end = MPI_Wtime();
	c->check(c->name, n, round);
	return end - start;
}

/* Prints the mean time of the slowest rank. The first repetition is not measured. */
static void measure(const struct collective *c, int n)
{
	double mine = 0, longest;

	for (int round = 0; round <= repetitions; round++) {
		double took = repeat(c, n, round);

		if (round)
			mine += took;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%s %zu %.1f\n", c->name, n * sizeof(long), longest / repetitions * 1e6);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	repetitions = argc > 1 ? atoi(argv[1]) : 10;
	out = calloc((size_t)ranks * MAX_ELEMENTS, sizeof(long));
	in = calloc((size_t)ranks * MAX_ELEMENTS, sizeof(long));
	if (!out || !in || repetitions < 1 || ranks > MAX_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int round = 0; round < WARM_UP; round++) {
		fill_for_each(1, round);
		alltoall(1, round);
		expect_own_from_all("Alltoall", 1, round);
	}
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++)
			if (argc < 3 || !strcmp(argv[2], collectives[i].name))
				measure(&collectives[i], sizes[size]);
	printf("rank %d of %d: all is as it was sent\n", rank, ranks);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
