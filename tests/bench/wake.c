/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wake CPU CPU HOW [SPIN]: two processes, one a processor, send to each other in turn and sleep for
 * each message: in ibv_get_cq_event's read (HOW = read), or in poll or epoll before it. Prints the
 * seconds of a message, one way. With SPIN they poll the queue for so many microseconds before they
 * sleep.
 */
#include "joined.h"
#include "laps.h"

#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define WARM_UP 100
#define ROUNDS  2000
#define LAP     10

static const char *how;
static double spin; /* seconds */
static int epoll_fd;

static void sleep_by_poll(int fd)
{
	struct pollfd pfd = {fd, POLLIN, 0};

	while (poll(&pfd, 1, -1) != 1)
		;
}

static void sleep_by_epoll(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	(void)fd;
	while (epoll_wait(epoll_fd, &event, 1, -1) != 1)
		;
}

static void sleep_by_read(int fd)
{
	(void)fd; /* ibv_get_cq_event does */
}

static const struct way {
	const char *name;
	void (*sleep)(int fd);
} ways[] = {{"read", sleep_by_read}, {"poll", sleep_by_poll}, {"epoll", sleep_by_epoll}};

static const struct way *way;

static void find_way(void)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, how))
			way = &ways[i];
	if (!way)
		errx(2, "no way '%s'", how);
}

/* The queue is looked at again once it is armed: what came before does not wake. */
static bool arm(struct joined *p)
{
	if (ibv_req_notify_cq(p->recv_cq, 0))
		err(1, "ibv_req_notify_cq");
	return joined_poll(p, p->recv_cq);
}

static bool spin_for_it(struct joined *p)
{
	double end = bench_now() + spin;

	do
		if (joined_poll(p, p->recv_cq))
			return true;
	while (bench_now() < end);
	return false;
}

static void await(struct joined *p)
{
	struct ibv_cq *cq;
	void *context;

	if (spin_for_it(p))
		return;
	while (!arm(p)) {
		way->sleep(p->channel->fd);
		if (ibv_get_cq_event(p->channel, &cq, &context))
			err(1, "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		if (joined_poll(p, p->recv_cq))
			return;
	}
}

static void rounds(struct joined *p, int n)
{
	while (n--) {
		if (p->leads)
			joined_post(p, IBV_WR_SEND);
		await(p);
		joined_post_receive(p, p->wcs[0].wr_id);
		if (!p->leads)
			joined_post(p, IBV_WR_SEND);
		joined_poll(p, p->send_cq);
	}
}

static double latency(struct joined *p)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct laps laps;

	joined_prepare(p);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->channel->fd, &event))
		err(1, "epoll");
	rounds(p, WARM_UP);
	laps_start(&laps);
	for (int i = 0; i < ROUNDS / LAP; i++) {
		rounds(p, LAP);
		laps_mark(&laps);
	}
	return laps_median(&laps) / LAP / 2;
}

int main(int argc, char **argv)
{
	struct joined joined = {.count = 1, .burst = 1};
	struct bench_cpus cpus;

	if (argc != 4 && argc != 5)
		errx(2, "usage: wake CPU CPU read|poll|epoll [SPIN]");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	how = argv[3];
	find_way();
	spin = argc == 5 ? strtod(argv[4], NULL) * 1e-6 : 0;
	printf("%.9g\n", joined_run(&cpus, &joined, latency));
	return 0;
}
