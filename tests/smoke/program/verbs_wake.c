/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that waits in ibv_get_cq_event sleeps once for each event, and the engine thread of its
 * process wakes once for each frame. The peer sends each message when the kernel says that the
 * receiver sleeps. The sender waits likewise, for the acknowledgement: its timeout of hours leaves
 * nothing else that could wake it.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "asleep.h"
#include "endpoint.h"
#include "exchange.h"

#define MESSAGES 60   /* all receives are posted in advance */
#define SILENCE  5000 /* us; the receiver must sleep this long before each message */
#define SLACK    6    /* sleeps for other reasons, such as page faults */
/* The engine thread may also sleep for the port's lock. */
#define ENGINE_SLACK (MESSAGES / 2)

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.events = true,
	.timeout = 31, /* hours: only the ACK can wake the sender */
	.size = 4096,
};

static struct endpoint ep;

/* Sleeps of this thread. */
static long own_sleeps(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_THREAD, &used))
		err(1, "getrusage");
	return used.ru_nvcsw;
}

/* Sleeps of the engine thread, the only other thread of the process. */
static long engine_sleeps(void)
{
	unsigned long times = 0;
	DIR *tasks = opendir("/proc/self/task");
	int found = 0;

	for (struct dirent *task; tasks && (task = readdir(tasks));) {
		if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
			continue;
		asleep(atoi(task->d_name), &times);
		found++;
	}
	if (found != 1)
		errx(1, "%d threads beside the first", found);
	closedir(tasks);
	return (long)times;
}

/* Arms the CQ and polls it empty; from then on only an event leads to a poll. */
static void arm(void)
{
	struct ibv_wc wc;

	if (ibv_req_notify_cq(ep.cq, 0) || ibv_poll_cq(ep.cq, 1, &wc))
		errx(1, "a completion of nothing");
}

/* Number of sleeps during the wait. Other calls are not counted: they may sleep for a lock. */
static long wait_for_event(void)
{
	long before = own_sleeps();

	endpoint_await_event(&ep);
	return own_sleeps() - before;
}

static void receive(int fd)
{
	long slept = 0, engine;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < MESSAGES; i++)
		endpoint_post_recv(&ep, i, 0, 0);
	engine = engine_sleeps();
	for (int i = 0; i < MESSAGES; i++) {
		arm();
		exchange_send(fd, "", 1);
		slept += wait_for_event();
		endpoint_success(&ep);
	}
	if (slept < MESSAGES || slept > MESSAGES + SLACK)
		errx(1, "the waiting thread slept %ld times for %d messages", slept, MESSAGES);
	engine = engine_sleeps() - engine;
	if (engine > MESSAGES + ENGINE_SLACK)
		errx(1, "the engine thread slept %ld times for %d messages", engine, MESSAGES);
	endpoint_close(&ep);
	exit(0);
}

static void send_to(pid_t receiver, int fd)
{
	unsigned long times;
	char waits;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < MESSAGES; i++) {
		exchange_recv(fd, &waits, 1);
		while (!asleep(receiver, &times))
			usleep(100);
		usleep(SILENCE);
		arm();
		endpoint_post_send(&ep);
		wait_for_event();
		endpoint_success(&ep);
	}
	endpoint_close(&ep);
}

int main(void)
{
	int fd;
	pid_t child = exchange_fork(&fd);

	if (!child)
		receive(fd);
	send_to(child, fd);
	exchange_join(child);
	return 0;
}
