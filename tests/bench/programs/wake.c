/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wake CPU CPU WHAT WAY [TIME]: two processes on one CPU each, with one connection. A process that
 * waits for a message sleeps in ibv_get_cq_event's read (WAY = read), or in poll or epoll before
 * the read.
 *
 * WHAT = answered: each process answers at once. Prints the seconds of a message, one way. With
 * TIME each process polls the CQ for TIME microseconds before it sleeps.
 *
 * WHAT = silent: one process sends 1 ms after the previous message (silence.h). Prints the seconds
 * from the post to the receiver's completion. WHAT = thread-switches, process-switches: prints the
 * number of voluntary context switches of the waiting thread, or of its process, for such a
 * message.
 *
 * WHAT = paced: one process sends every TIME microseconds. Prints the CPU share of both processes.
 *
 * WHAT = asleep: after an exchange of messages both processes sleep until SIGTERM. Prints a line
 * first.
 */
#include "lib/joined.h"
#include "lib/laps.h"
#include "lib/pace.h"
#include "lib/silence.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define WARM_UP 100
#define ROUNDS  2000
#define LAP     10

static double spin; /* seconds */
static int epoll_fd;
static struct silence *silence;
static struct pace *pace;

/* False: a signal ended the sleep. */
static bool sleep_by_poll(int fd)
{
	struct pollfd pfd = {fd, POLLIN, 0};

	return poll(&pfd, 1, -1) == 1;
}

static bool sleep_by_epoll(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	(void)fd;
	return epoll_wait(epoll_fd, &event, 1, -1) == 1;
}

static bool sleep_by_read(int fd)
{
	(void)fd; /* ibv_get_cq_event does */
	return true;
}

static const struct way {
	const char *name;
	bool (*sleep)(int fd);
} ways[] = {{"read", sleep_by_read}, {"poll", sleep_by_poll}, {"epoll", sleep_by_epoll}};

static const struct way *way;

/* --- A message */

/* Polls the queue again after arming it: with rdma_rxe, a completion before the arming
 * raises no event. */
static bool arm(struct joined *p)
{
	if (ibv_req_notify_cq(p->recv_cq, 0))
		err(1, "ibv_req_notify_cq");
	return joined_poll(p, p->recv_cq);
}

static bool spin_for_it(struct joined *p)
{
	double end = bench_now() + spin;

	while (bench_now() < end)
		if (joined_poll(p, p->recv_cq))
			return true;
	return false;
}

static bool take_event(struct joined *p)
{
	struct ibv_cq *cq;
	void *context;

	if (!way->sleep(p->channel->fd))
		return false;
	if (ibv_get_cq_event(p->channel, &cq, &context)) {
		if (errno == EINTR)
			return false;
		err(1, "ibv_get_cq_event");
	}
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void await(struct joined *p)
{
	if (spin_for_it(p))
		return;
	while (!arm(p))
		if (take_event(p) && joined_poll(p, p->recv_cq))
			return;
}

static void prepare(struct joined *p)
{
	struct epoll_event event = {.events = EPOLLIN};

	joined_prepare(p);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->channel->fd, &event))
		err(1, "epoll");
}

/* --- A message that is answered at once */

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

static double answered(struct joined *p)
{
	struct laps laps;

	prepare(p);
	rounds(p, WARM_UP);
	laps_start(&laps);
	for (int i = 0; i < ROUNDS / LAP; i++) {
		rounds(p, LAP);
		laps_mark(&laps);
	}
	return laps_median(&laps) / LAP / 2;
}

/* --- A message after silence: the leading process receives. */

/* Polls the send queue only when it has a completion: an empty poll keeps the engine awake. */
static void tell(struct joined *p)
{
	for (int i = 0; i < SILENCE_MESSAGES; i++) {
		silence_keep(silence);
		if (i)
			joined_poll(p, p->send_cq);
		silence_end(silence);
		joined_post(p, IBV_WR_SEND);
	}
}

static void hear(struct joined *p, struct laps *laps)
{
	laps_start(laps);
	for (int i = 0; i < SILENCE_MESSAGES; i++) {
		await(p);
		silence_heard(silence, laps);
		joined_post_receive(p, p->wcs[0].wr_id);
	}
}

static double silent(struct joined *p)
{
	struct laps laps;

	prepare(p);
	if (!p->leads) {
		tell(p);
		return 0;
	}
	hear(p, &laps);
	return laps_median(&laps);
}

static double switches(int who)
{
	struct rusage used;

	if (getrusage(who, &used))
		err(1, "getrusage");
	return (double)used.ru_nvcsw;
}

static double switches_of(struct joined *p, int who)
{
	struct laps laps;
	double before;

	prepare(p);
	if (!p->leads) {
		tell(p);
		return 0;
	}
	before = switches(who);
	hear(p, &laps);
	return (switches(who) - before) / SILENCE_MESSAGES;
}

static double thread_switches(struct joined *p)
{
	return switches_of(p, RUSAGE_THREAD);
}

static double process_switches(struct joined *p)
{
	return switches_of(p, RUSAGE_SELF);
}

/* --- Messages at a pace: the leading process sends. */

static double paced(struct joined *p)
{
	prepare(p);
	for (int i = 0; i < PACE_MESSAGES; i++) {
		if (!p->leads) {
			await(p);
			pace_hear(pace);
			joined_post_receive(p, p->wcs[0].wr_id);
			continue;
		}
		pace_wait(pace);
		if (i)
			joined_poll(p, p->send_cq);
		pace_send(pace);
		joined_post(p, IBV_WR_SEND);
	}
	if (!p->leads)
		return 0;
	pace_wait(pace);
	return pace_share(pace);
}

/* --- Asleep */

static void wake_up(int signal)
{
	(void)signal;
}

/* The leading process handles the signal; its message ends the sleep of the other process. */
static double stay_asleep(struct joined *p)
{
	const struct sigaction action = {.sa_handler = wake_up};

	prepare(p);
	rounds(p, WARM_UP);
	if (!p->leads) {
		await(p);
		return 0;
	}
	if (sigaction(SIGTERM, &action, NULL))
		err(1, "sigaction");
	puts("asleep");
	fflush(stdout);
	/* An event may be pending for a message that an earlier poll has returned. */
	do
		if (arm(p))
			errx(1, "a message that nobody sent");
	while (take_event(p));
	joined_post(p, IBV_WR_SEND);
	return 0;
}

/* --- */

static const struct what {
	const char *name;
	double (*body)(struct joined *p);
} whats[] = {{"answered", answered},
	     {"silent", silent},
	     {"thread-switches", thread_switches},
	     {"process-switches", process_switches},
	     {"paced", paced},
	     {"asleep", stay_asleep}};

static const struct what *find_what(const char *name)
{
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(whats[i].name, name))
			return &whats[i];
	errx(2, "'%s' is nothing to measure", name);
}

static const struct way *find_way(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	errx(2, "no way '%s'", name);
}

int main(int argc, char **argv)
{
	struct joined joined = {.count = 1, .burst = 1};
	const struct what *what;
	struct bench_cpus cpus;
	double time;

	if (argc != 5 && argc != 6)
		errx(2, "usage: wake CPU CPU WHAT read|poll|epoll [TIME]");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	what = find_what(argv[3]);
	way = find_way(argv[4]);
	time = argc == 6 ? strtod(argv[5], NULL) * 1e-6 : 0;
	spin = what->body == paced ? 0 : time;
	silence = silence_create();
	pace = pace_create(time);
	/* Both processes get the signal. */
	signal(SIGTERM, what->body == stay_asleep ? SIG_IGN : SIG_DFL);
	printf("%.9g\n", joined_run(&cpus, &joined, what->body));
	return 0;
}
