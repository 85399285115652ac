/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gloo_payload FIRST LAST RANKS STORE GID_INDEX: ranks FIRST to LAST of RANKS, each a process whose
 * threads have a context of Gloo's ibverbs transport each, with a queue pair to every other rank.
 * All compare the results of collectives. STORE is a directory that all ranks share.
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/ibverbs/device.h>

static const int THREADS = 4;
static const int ROUNDS = 3;

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static void expect(const char *what, int64_t found, int64_t wanted)
{
	if (found == wanted)
		return;
	std::fprintf(stderr, "%s: %lld, not %lld\n", what, (long long)found, (long long)wanted);
	std::exit(1);
}

static int64_t value(int rank, int round, int i)
{
	return (int64_t)rank * 1000003 + round * 10007 + i;
}

/* In place: the memory is registered. */
static void fill(std::vector<int64_t> &data, int rank, int round)
{
	for (size_t i = 0; i < data.size(); i++)
		data[i] = value(rank, round, (int)i);
}

/*
 * Algorithms and data are registered memory, and live on: Gloo ends a process that destroys a
 * buffer before its last send has completed.
 */
static std::vector<int64_t> &registered(int count)
{
	return *new std::vector<int64_t>(count);
}

template <typename Algorithm> static void allreduce(const char *name, Context context, int count)
{
	auto &data = registered(count);
	auto &algorithm = *new Algorithm(context, {data.data()}, count);

	for (int round = 0; round < ROUNDS; round++) {
		fill(data, context->rank, round);
		algorithm.run();
		for (int i = 0; i < count; i++) {
			int64_t sum = 0;

			for (int rank = 0; rank < context->size; rank++)
				sum += value(rank, round, i);
			expect(name, data[i], sum);
		}
	}
}

static void broadcast(Context context, int count)
{
	auto &data = registered(count);
	auto &algorithm = *new gloo::BroadcastOneToAll<int64_t>(context, {data.data()}, count, 1);

	for (int round = 0; round < ROUNDS; round++) {
		fill(data, context->rank, round);
		algorithm.run();
		for (int i = 0; i < count; i++)
			expect("broadcast", data[i], value(1, round, i));
	}
}

static void allgather(Context context, int count)
{
	auto &in = registered(count), &out = registered(count * context->size);
	auto &algorithm =
		*new gloo::AllgatherRing<int64_t>(context, {in.data()}, out.data(), count);
	auto &barrier = *new gloo::BarrierAllToAll(context);

	for (int round = 0; round < ROUNDS; round++) {
		fill(in, context->rank, round);
		algorithm.run();
		for (int i = 0; i < count * context->size; i++)
			expect("allgather", out[i], value(i / count, round, i % count));
		/* The next round writes to the buffers of ranks that still compare. */
		barrier.run();
	}
}

/* Waits until all ranks have come to this point. */
static void meet(gloo::rendezvous::Store &store, const std::string &point, int rank, int ranks)
{
	std::vector<std::string> all;

	store.set(point + std::to_string(rank), {1});
	for (int i = 0; i < ranks; i++)
		all.push_back(point + std::to_string(i));
	store.wait(all);
}

static void run_thread(int rank, int ranks, int thread, gloo::rendezvous::Store &all,
		       std::shared_ptr<gloo::transport::Device> device)
{
	gloo::rendezvous::PrefixStore store("thread" + std::to_string(thread), all);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

	context->connectFullMesh(store, device);
	/* Gloo retries for half a second only, so all queue pairs are ready before the first
	 * message. */
	meet(store, "connected", rank, ranks);
	for (int count : {1, 1000, 50000}) {
		allreduce<gloo::AllreduceRing<int64_t>>("ring", context, count);
		allreduce<gloo::AllreduceRingChunked<int64_t>>("chunked ring", context, count);
		allreduce<gloo::AllreduceHalvingDoubling<int64_t>>("halving", context, count);
		broadcast(context, count);
		allgather(context, count);
	}
}

static void run_rank(int rank, int ranks, const char *directory, int gid_index)
{
	gloo::transport::ibverbs::attr attr = {"urxe0", 1, gid_index};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(directory);
	std::vector<std::thread> threads;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(run_thread, rank, ranks, i, std::ref(store), device);
	for (auto &thread : threads)
		thread.join();
	/* No rank ends while another one waits for its messages. */
	meet(store, "end", rank, ranks);
	std::printf("rank %d of %d: all is as it was sent\n", rank, ranks);
	std::fflush(stdout);
	_exit(0); /* without destructors */
}

int main(int argc, char **argv)
{
	int status, failed = 0;

	if (argc != 6) {
		std::fprintf(stderr, "usage: gloo_payload FIRST LAST RANKS STORE GID_INDEX\n");
		return 2;
	}
	mkdir(argv[4], 0700);
	for (int rank = std::atoi(argv[1]); rank <= std::atoi(argv[2]); rank++) {
		if (fork() == 0)
			run_rank(rank, std::atoi(argv[3]), argv[4], std::atoi(argv[5]));
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
