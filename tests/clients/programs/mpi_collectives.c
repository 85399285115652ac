/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each collective operation of MPI, in a short and a long size, the result of each repetition
 * compared. Rank 0 prints the time of an operation: collective, bytes of a rank, microseconds.
 * Barriers that are not counted separate the repetitions, so no rank runs ahead.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define MOST       8192 /* longs of a rank's part */
#define CONNECTING 20   /* exchanges before the first measurement, in which the ranks connect */

static const int sizes[] = {1, MOST};
static int rank, ranks, repetitions;
static long *out, *in;
static int counts[64], places[64];

/* Element i of what `from` sends to `to`, in this repetition. */
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

static void fill_all(int n, int round)
{
	for (int to = 0; to < ranks; to++)
		fill(out + (size_t)to * n, to, n, round);
}

static int root_of(int round)
{
	return round % ranks;
}

/* --- Each function fills, starts the clock, calls, stops the clock, and compares. */

static double barrier(int n, int round)
{
	double start = MPI_Wtime();

	(void)n, (void)round;
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Wtime() - start;
}

static double bcast(int n, int round)
{
	int root = root_of(round);
	double start;

	if (rank == root)
		fill(in, 0, n, round);
	start = MPI_Wtime();
	MPI_Bcast(in, n, MPI_LONG, root, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	expect_from("Bcast", in, root, 0, n, round);
	return start;
}

static double reduce(int n, int round)
{
	int root = root_of(round);
	double start;

	fill(out, 0, n, round);
	start = MPI_Wtime();
	MPI_Reduce(out, in, n, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	if (rank == root)
		expect_sum("Reduce", in, ranks, 0, n, round);
	return start;
}

static double allreduce(int n, int round)
{
	double start;

	fill(out, 0, n, round);
	start = MPI_Wtime();
	MPI_Allreduce(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	expect_sum("Allreduce", in, ranks, 0, n, round);
	return start;
}

static double scan(int n, int round)
{
	double start;

	fill(out, 0, n, round);
	start = MPI_Wtime();
	MPI_Scan(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	expect_sum("Scan", in, rank + 1, 0, n, round);
	return start;
}

static double reduce_scatter(int n, int round)
{
	double start;

	fill_all(n, round);
	start = MPI_Wtime();
	MPI_Reduce_scatter_block(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	expect_sum("Reduce_scatter_block", in, ranks, rank, n, round);
	return start;
}

static double gather(int n, int round)
{
	int root = root_of(round);
	double start;

	fill(out, 0, n, round);
	start = MPI_Wtime();
	MPI_Gather(out, n, MPI_LONG, in, n, MPI_LONG, root, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	for (int from = 0; rank == root && from < ranks; from++)
		expect_from("Gather", in + (size_t)from * n, from, 0, n, round);
	return start;
}

static double scatter(int n, int round)
{
	int root = root_of(round);
	double start;

	fill_all(n, round);
	start = MPI_Wtime();
	MPI_Scatter(out, n, MPI_LONG, in, n, MPI_LONG, root, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	expect_from("Scatter", in, root, rank, n, round);
	return start;
}

static double allgather(int n, int round)
{
	double start;

	fill(out, 0, n, round);
	start = MPI_Wtime();
	MPI_Allgather(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	for (int from = 0; from < ranks; from++)
		expect_from("Allgather", in + (size_t)from * n, from, 0, n, round);
	return start;
}

static double alltoall(int n, int round)
{
	double start;

	fill_all(n, round);
	start = MPI_Wtime();
	MPI_Alltoall(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	for (int from = 0; from < ranks; from++)
		expect_from("Alltoall", in + (size_t)from * n, from, rank, n, round);
	return start;
}

/* The parts of all ranks lie in reverse order. */
static double alltoallv(int n, int round)
{
	double start;

	for (int i = 0; i < ranks; i++) {
		counts[i] = n;
		places[i] = (ranks - 1 - i) * n;
		fill(out + places[i], i, n, round);
	}
	start = MPI_Wtime();
	MPI_Alltoallv(out, counts, places, MPI_LONG, in, counts, places, MPI_LONG, MPI_COMM_WORLD);
	start = MPI_Wtime() - start;
	for (int from = 0; from < ranks; from++)
		expect_from("Alltoallv", in + places[from], from, rank, n, round);
	return start;
}

static const struct {
	const char *name;
	double (*call)(int n, int round);
} collectives[] = {
	{"Barrier", barrier},     {"Bcast", bcast},
	{"Reduce", reduce},       {"Allreduce", allreduce},
	{"Scan", scan},           {"Reduce_scatter_block", reduce_scatter},
	{"Gather", gather},       {"Scatter", scatter},
	{"Allgather", allgather}, {"Alltoall", alltoall},
	{"Alltoallv", alltoallv},
};

/* The first repetition is not counted. */
static void run(size_t which, int n)
{
	double mine = 0, longest;

	for (int round = 0; round <= repetitions; round++) {
		double took = collectives[which].call(n, round);

		if (round)
			mine += took;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%s %zu %.1f\n", collectives[which].name, n * sizeof(long),
		       longest / repetitions * 1e6);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	repetitions = argc > 1 ? atoi(argv[1]) : 10;
	out = calloc((size_t)ranks * MOST, sizeof(long));
	in = calloc((size_t)ranks * MOST, sizeof(long));
	if (!out || !in || repetitions < 1 || ranks > 64)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int round = 0; round < CONNECTING; round++)
		alltoall(1, round);
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++)
			run(i, sizes[size]);
	printf("rank %d of %d: all is as it was sent\n", rank, ranks);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
