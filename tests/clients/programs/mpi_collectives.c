/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_collectives [REPETITIONS [NAME]]: repeats 22 collective operations of MPI, blocking and
 * non-blocking, or only NAME, in a short and a long size, and checks the result of each repetition.
 * Five of them exchange data with the neighbours in a ring of all ranks.
 * Rank 0 prints for each size: name, most bytes for a rank, mean time in microseconds. Repetitions
 * are separated by barriers outside the measured time, so no rank starts the next one early.
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
static long sums[MAX_ELEMENTS];                   /* of the collectives at the same time */
static int counts[MAX_RANKS], offsets[MAX_RANKS]; /* of parts of unequal length */
static int byte_offsets[MAX_RANKS];
static MPI_Datatype types[MAX_RANKS];
static MPI_Comm ring;
static int neighbours[2];                   /* the ranks before and after this one */
static int near_counts[2], near_offsets[2]; /* of the neighbours' parts */
static MPI_Aint near_bytes[2];              /* the same offsets in bytes */

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

/* The elements in a part of the collectives with parts of unequal length, of at most n. */
static int part(int number, int n)
{
	return n - number % 3 * n / 2;
}

/* The part of each rank; the parts lie in reverse order. */
static void place_parts(int n)
{
	for (int i = 0; i < ranks; i++) {
		counts[i] = part(i, n);
		offsets[i] = (ranks - 1 - i) * n;
		byte_offsets[i] = offsets[i] * (int)sizeof(long);
	}
}

static void fill_own_part(int n, int round)
{
	place_parts(n);
	fill(out, 0, counts[rank], round);
}

static void fill_part_for_each(int n, int round)
{
	place_parts(n);
	for (int to = 0; to < ranks; to++)
		fill(out + offsets[to], to, counts[to], round);
}

/* Reduce_scatter has no offsets. */
static void fill_packed_part_for_each(int n, int round)
{
	long *data = out;

	place_parts(n);
	for (int to = 0; to < ranks; data += counts[to++])
		fill(data, to, counts[to], round);
}

/* A part for each pair of ranks, of the same length in both directions. */
static void fill_pair_parts(int n, int round)
{
	place_parts(n);
	for (int to = 0; to < ranks; to++) {
		counts[to] = part(rank + to, n);
		fill(out + offsets[to], to, counts[to], round);
	}
}

/* A part for each neighbour. If one rank is both neighbours, both parts are the same. */
static void fill_for_neighbours(int n, int round)
{
	for (int i = 0; i < 2; i++) {
		near_counts[i] = n;
		near_offsets[i] = i * n;
		near_bytes[i] = near_offsets[i] * (MPI_Aint)sizeof(long);
		fill(out + near_offsets[i], neighbours[i], n, round);
	}
}

static void fill_for_both_neighbours(int n, int round)
{
	fill_for_neighbours(n, round);
	fill_for_all(n, round);
}

/* --- Calls. */

/* Defines the calls of a collective's blocking and non-blocking function. */
#define CALLS(blocking, immediate, ...)                 \
	static void blocking(int n, int round)          \
	{                                               \
		(void)n, (void)round;                   \
		MPI_##blocking(__VA_ARGS__);            \
	}                                               \
	static void immediate(int n, int round)         \
	{                                               \
		MPI_Request request;                    \
                                                        \
		(void)n, (void)round;                   \
		MPI_##immediate(__VA_ARGS__, &request); \
		MPI_Wait(&request, MPI_STATUS_IGNORE);  \
	}

CALLS(Barrier, Ibarrier, MPI_COMM_WORLD)
CALLS(Bcast, Ibcast, in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD)
CALLS(Reduce, Ireduce, out, in, n, MPI_LONG, MPI_SUM, root_of(round), MPI_COMM_WORLD)
CALLS(Allreduce, Iallreduce, out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)
CALLS(Scan, Iscan, out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)
CALLS(Exscan, Iexscan, out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)
CALLS(Reduce_scatter_block, Ireduce_scatter_block, out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)
CALLS(Reduce_scatter, Ireduce_scatter, out, in, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)
CALLS(Gather, Igather, out, n, MPI_LONG, in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD)
CALLS(Gatherv, Igatherv, out, counts[rank], MPI_LONG, in, counts, offsets, MPI_LONG, root_of(round),
      MPI_COMM_WORLD)
CALLS(Scatter, Iscatter, out, n, MPI_LONG, in, n, MPI_LONG, root_of(round), MPI_COMM_WORLD)
CALLS(Scatterv, Iscatterv, out, counts, offsets, MPI_LONG, in, counts[rank], MPI_LONG,
      root_of(round), MPI_COMM_WORLD)
CALLS(Allgather, Iallgather, out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD)
CALLS(Allgatherv, Iallgatherv, out, counts[rank], MPI_LONG, in, counts, offsets, MPI_LONG,
      MPI_COMM_WORLD)
CALLS(Alltoall, Ialltoall, out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD)
CALLS(Alltoallv, Ialltoallv, out, counts, offsets, MPI_LONG, in, counts, offsets, MPI_LONG,
      MPI_COMM_WORLD)
CALLS(Alltoallw, Ialltoallw, out, counts, byte_offsets, types, in, counts, byte_offsets, types,
      MPI_COMM_WORLD)
CALLS(Neighbor_allgather, Ineighbor_allgather, out, n, MPI_LONG, in, n, MPI_LONG, ring)
CALLS(Neighbor_allgatherv, Ineighbor_allgatherv, out, n, MPI_LONG, in, near_counts, near_offsets,
      MPI_LONG, ring)
CALLS(Neighbor_alltoall, Ineighbor_alltoall, out, n, MPI_LONG, in, n, MPI_LONG, ring)
CALLS(Neighbor_alltoallv, Ineighbor_alltoallv, out, near_counts, near_offsets, MPI_LONG, in,
      near_counts, near_offsets, MPI_LONG, ring)
CALLS(Neighbor_alltoallw, Ineighbor_alltoallw, out, near_counts, near_bytes, types, in, near_counts,
      near_bytes, types, ring)

/* Three collectives at the same time. */
static void together(int n, int round)
{
	MPI_Request request[3];

	(void)round;
	MPI_Ialltoall(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD, &request[0]);
	MPI_Iallreduce(out, sums, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request[1]);
	MPI_Ibarrier(MPI_COMM_WORLD, &request[2]);
	MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
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

static void expect_sum_of_others(const char *name, int n, int round)
{
	if (rank)
		expect_sum(name, in, rank, 0, n, round);
}

static void expect_own_sum(const char *name, int n, int round)
{
	expect_sum(name, in, ranks, rank, n, round);
}

static void expect_own_part_sum(const char *name, int n, int round)
{
	(void)n;
	expect_own_sum(name, counts[rank], round);
}

static void expect_own_part_from_root(const char *name, int n, int round)
{
	(void)n;
	expect_own_from_root(name, counts[rank], round);
}

static void expect_from_all(const char *name, int n, int round)
{
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + (size_t)from * n, from, 0, n, round);
}

static void expect_part_from_all(const char *name, int n, int round)
{
	(void)n;
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + offsets[from], from, 0, counts[from], round);
}

static void expect_from_all_at_root(const char *name, int n, int round)
{
	if (rank == root_of(round))
		expect_from_all(name, n, round);
}

static void expect_part_from_all_at_root(const char *name, int n, int round)
{
	if (rank == root_of(round))
		expect_part_from_all(name, n, round);
}

static void expect_own_from_all(const char *name, int n, int round)
{
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + (size_t)from * n, from, rank, n, round);
}

static void expect_pair_parts(const char *name, int n, int round)
{
	(void)n;
	for (int from = 0; from < ranks; from++)
		expect_from(name, in + offsets[from], from, rank, counts[from], round);
}

static void expect_from_neighbours(const char *name, int n, int round)
{
	for (int i = 0; i < 2; i++)
		expect_from(name, in + near_offsets[i], neighbours[i], 0, n, round);
}

static void expect_own_from_neighbours(const char *name, int n, int round)
{
	for (int i = 0; i < 2; i++)
		expect_from(name, in + near_offsets[i], neighbours[i], rank, n, round);
}

static void expect_all_together(const char *name, int n, int round)
{
	expect_own_from_all(name, n, round);
	expect_sum(name, sums, ranks, 0, n, round);
}

/* A collective, and its non-blocking form. */
#define BOTH(blocking, immediate, fill, check)     \
	{#blocking, fill, blocking, check},        \
	{                                          \
#immediate, fill, immediate, check \
	}

static const struct collective {
	const char *name;
	void (*fill)(int n, int round);
	void (*call)(int n, int round);
	void (*check)(const char *name, int n, int round);
} collectives[] = {
	BOTH(Barrier, Ibarrier, fill_for_all, expect_nothing),
	BOTH(Bcast, Ibcast, fill_at_root, expect_from_root),
	BOTH(Reduce, Ireduce, fill_for_all, expect_sum_at_root),
	BOTH(Allreduce, Iallreduce, fill_for_all, expect_sum_at_all),
	BOTH(Scan, Iscan, fill_for_all, expect_prefix_sum),
	BOTH(Exscan, Iexscan, fill_for_all, expect_sum_of_others),
	BOTH(Reduce_scatter_block, Ireduce_scatter_block, fill_for_each, expect_own_sum),
	BOTH(Reduce_scatter, Ireduce_scatter, fill_packed_part_for_each, expect_own_part_sum),
	BOTH(Gather, Igather, fill_for_all, expect_from_all_at_root),
	BOTH(Gatherv, Igatherv, fill_own_part, expect_part_from_all_at_root),
	BOTH(Scatter, Iscatter, fill_for_each, expect_own_from_root),
	BOTH(Scatterv, Iscatterv, fill_part_for_each, expect_own_part_from_root),
	BOTH(Allgather, Iallgather, fill_for_all, expect_from_all),
	BOTH(Allgatherv, Iallgatherv, fill_own_part, expect_part_from_all),
	BOTH(Alltoall, Ialltoall, fill_for_each, expect_own_from_all),
	BOTH(Alltoallv, Ialltoallv, fill_pair_parts, expect_pair_parts),
	BOTH(Alltoallw, Ialltoallw, fill_pair_parts, expect_pair_parts),
	BOTH(Neighbor_allgather, Ineighbor_allgather, fill_for_both_neighbours,
	     expect_from_neighbours),
	BOTH(Neighbor_allgatherv, Ineighbor_allgatherv, fill_for_both_neighbours,
	     expect_from_neighbours),
	BOTH(Neighbor_alltoall, Ineighbor_alltoall, fill_for_neighbours,
	     expect_own_from_neighbours),
	BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, fill_for_neighbours,
	     expect_own_from_neighbours),
	BOTH(Neighbor_alltoallw, Ineighbor_alltoallw, fill_for_neighbours,
	     expect_own_from_neighbours),
	{"together", fill_for_each, together, expect_all_together},
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

static void make_ring(void)
{
	const int periodic = 1;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
	MPI_Cart_shift(ring, 0, 1, &neighbours[0], &neighbours[1]);
	for (int i = 0; i < MAX_RANKS; i++)
		types[i] = MPI_LONG;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	repetitions = argc > 1 ? atoi(argv[1]) : 10;
	out = calloc(((size_t)ranks + 1) * MAX_ELEMENTS, sizeof(long));
	in = calloc(((size_t)ranks + 1) * MAX_ELEMENTS, sizeof(long));
	if (!out || !in || repetitions < 1 || ranks > MAX_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	make_ring();
	for (int round = 0; round < WARM_UP; round++) {
		fill_for_each(1, round);
		Alltoall(1, round);
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
