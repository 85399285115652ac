/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages between all ranks and collectives, in sizes for the eager and the rendezvous protocol;
 * every byte is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define MOST (1 << 20)

static const int sizes[] = {0, 1, 1000, 65536, MOST};
static int rank, ranks;

static unsigned char byte_of(int from, int to, int i)
{
	return (unsigned char)(from * 31 + to * 7 + i + i / 251);
}

static void fill(unsigned char *data, int from, int to, int n)
{
	for (int i = 0; i < n; i++)
		data[i] = byte_of(from, to, i);
}

static void check(const char *what, const unsigned char *data, int from, int to, int n)
{
	for (int i = 0; i < n; i++)
		if (data[i] != byte_of(from, to, i)) {
			fprintf(stderr, "rank %d: %s of %d bytes from %d is wrong at %d\n", rank,
				what, n, from, i);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static void *room(size_t size)
{
	void *data = malloc(size);

	if (!data)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(data, 0xee, size);
	return data;
}

/* Each rank sends to every rank, and to itself, at the same time. */
static void point_to_point(int n, int synchronous)
{
	unsigned char *out = room((size_t)ranks * MOST), *in = room((size_t)ranks * MOST);
	MPI_Request *request = room(2 * (size_t)ranks * sizeof(MPI_Request));

	for (int i = 0; i < ranks; i++)
		MPI_Irecv(in + (size_t)i * MOST, n, MPI_BYTE, i, n, MPI_COMM_WORLD, &request[i]);
	for (int i = 0; i < ranks; i++) {
		unsigned char *data = out + (size_t)i * MOST;

		fill(data, rank, i, n);
		(synchronous ? MPI_Issend : MPI_Isend)(data, n, MPI_BYTE, i, n, MPI_COMM_WORLD,
						       &request[ranks + i]);
	}
	MPI_Waitall(2 * ranks, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < ranks; i++)
		check("a message", in + (size_t)i * MOST, i, rank, n);
	free(request);
	free(in);
	free(out);
}

static void collectives(int n)
{
	unsigned char *out = room((size_t)ranks * MOST), *in = room((size_t)ranks * MOST);

	for (int root = 0; root < ranks; root++) {
		if (rank == root)
			fill(out, root, 0, n);
		MPI_Bcast(out, n, MPI_BYTE, root, MPI_COMM_WORLD);
		check("a broadcast", out, root, 0, n);
	}
	for (int i = 0; i < ranks; i++)
		fill(out + (size_t)i * (size_t)n, rank, i, n);
	MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		check("all to all", in + (size_t)i * (size_t)n, i, rank, n);
	fill(out, rank, 0, n);
	MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		check("a gathering", in + (size_t)i * (size_t)n, i, 0, n);
	free(in);
	free(out);
}

static void sums(int n)
{
	long *mine = room(MOST * sizeof(long)), *sum = room(MOST * sizeof(long));

	for (int i = 0; i < n; i++)
		mine[i] = (long)rank * i;
	MPI_Allreduce(mine, sum, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		if (sum[i] != (long)ranks * (ranks - 1) / 2 * i) {
			fprintf(stderr, "rank %d: sum %d of %d is %ld\n", rank, i, n, sum[i]);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	free(sum);
	free(mine);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		point_to_point(sizes[i], 0);
		point_to_point(sizes[i], 1);
		collectives(sizes[i]);
		sums(sizes[i] / (int)sizeof(long));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	printf("rank %d of %d: all is as it was sent\n", rank, ranks);
	MPI_Finalize();
	return 0;
}
