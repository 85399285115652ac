/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared_core CPU CPU WHAT: programs that share the first processor.
 *
 * WHAT = work: prints the seconds of 20,000 computations beside a busy process. WHAT = polls: the
 * same, and the program polls an empty completion queue after each computation.
 *
 * WHAT = verbs: two processes answer each other's messages; each polls after each computation.
 * Prints the seconds from a message to its answer. WHAT = tcp: the same over TCP.
 */
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "lib/joined.h"
#include "lib/two.h"
#include "limits/tcp_latency.h"

#define PIECES 20000
#define STEPS  5000 /* of a computation of some microseconds */
#define ROUNDS 200
#define SIZE   8

static struct bench_cpus cpus;

/* A computation that the compiler cannot shorten. */
static void work(void)
{
	uint64_t x = 1;

	for (int i = 0; i < STEPS; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

/* --- Work beside a busy process */

static void work_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		work();
}

static struct ibv_cq *make_cq(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;

	if (!cq)
		errx(1, "no RDMA device");
	return cq;
}

static double work_beside(struct ibv_cq *polled)
{
	pid_t busy = bench_child(&cpus, work_for_ever, NULL);
	double start = bench_now(), seconds;
	struct ibv_wc wc;

	for (int i = 0; i < PIECES; i++) {
		work();
		if (polled && ibv_poll_cq(polled, 1, &wc))
			errx(1, "a completion of nothing");
	}
	seconds = bench_now() - start;
	bench_end(busy);
	return seconds;
}

static double measure_work(void)
{
	return work_beside(NULL);
}

static double measure_polls(void)
{
	return work_beside(make_cq());
}

/* --- Messages in turn */

static void await_completion(struct joined *p)
{
	do
		work();
	while (!joined_poll(p, p->recv_cq));
	joined_post_receive(p, p->wcs[0].wr_id);
}

static void take_turns(struct joined *p, int rounds)
{
	while (rounds--) {
		if (p->leads)
			joined_post(p, IBV_WR_SEND);
		await_completion(p);
		if (!p->leads)
			joined_post(p, IBV_WR_SEND);
		joined_poll(p, p->send_cq);
	}
}

static double by_verbs(struct joined *p)
{
	double start;

	joined_prepare(p);
	take_turns(p, 1);
	start = bench_now();
	take_turns(p, ROUNDS);
	return (bench_now() - start) / ROUNDS;
}

static double measure_verbs(void)
{
	struct joined joined = {.count = 1, .burst = 1};

	return joined_run(&cpus, &joined, by_verbs);
}

static void send_message(int fd)
{
	const uint8_t message[SIZE] = {0};

	if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		err(1, "send");
}

/* Reads a whole message, because only one is in flight. */
static void await_message(int fd)
{
	uint8_t message[SIZE];
	ssize_t n;

	do {
		work();
		n = recv(fd, message, sizeof(message), MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	if (n != sizeof(message))
		err(1, "recv");
}

static void answer_by_tcp(void *fd)
{
	for (;;) {
		await_message(*(int *)fd);
		send_message(*(int *)fd);
	}
}

static double measure_tcp(void)
{
	const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
	double start, seconds;
	pid_t child;
	int fds[2];

	tcp_connect_pair(fds, loopback, NULL);
	child = bench_child(&cpus, answer_by_tcp, &fds[1]);
	start = bench_now();
	for (int i = 0; i < ROUNDS; i++) {
		send_message(fds[0]);
		await_message(fds[0]);
	}
	seconds = bench_now() - start;
	bench_end(child);
	return seconds / ROUNDS;
}

/* --- */

static const struct {
	const char *name;
	double (*measure)(void);
} whats[] = {{"work", measure_work},
	     {"polls", measure_polls},
	     {"verbs", measure_verbs},
	     {"tcp", measure_tcp}};

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: shared_core CPU CPU work|polls|verbs|tcp");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[1])};
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
		if (strcmp(whats[i].name, argv[3]))
			continue;
		bench_pin(cpus.own);
		printf("%.9g\n", whats[i].measure());
		return 0;
	}
	errx(2, "'%s' is nothing to measure", argv[3]);
}
