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

#define MESSAGES 60   /* of which there are receives */
#define SILENCE  5000 /* us, before each; that long a receiver must go on to sleep */
#define SLACK    6    /* sleeps for other reasons, as a page that the kernel has to find */
#define THREADS  2    /* that a message wakes: the engine thread, and the thread that waits */

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.events = true,
	.timeout = 31, /* hours: who waits for an acknowledgement has to be woken by it */
	.size = 4096,
};

static struct endpoint ep;

/* Of the thread, or of all the process. */
static long sleeps(int who)
{
	struct rusage used;

	if (getrusage(who, &used))
		err(1, "getrusage");
	return used.ru_nvcsw;
}

/* After it nothing looks for completions but what an event wakes. */
static void arm(void)
{
	struct ibv_wc wc;

	if (ibv_req_notify_cq(ep.cq, 0) || ibv_poll_cq(ep.cq, 1, &wc))
		errx(1, "a completion of nothing");
}

/* How often the thread slept. Only the wait counts: elsewhere it may have to wait for a lock. */
static long wait_for_event(void)
{
	long before = sleeps(RUSAGE_THREAD);

	endpoint_await_event(&ep);
	return sleeps(RUSAGE_THREAD) - before;
}

static void receive(int fd)
{
	long slept = 0, all;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < MESSAGES; i++)
		endpoint_post_recv(&ep, i, 0, 0);
	all = sleeps(RUSAGE_SELF);
	for (int i = 0; i < MESSAGES; i++) {
		arm();
		exchange_send(fd, "", 1);
		slept += wait_for_event();
		endpoint_success(&ep);
	}
	if (slept < MESSAGES || slept > MESSAGES + SLACK)
		errx(1, "who waited for %d messages slept %ld times", MESSAGES, slept);
	all = sleeps(RUSAGE_SELF) - all;
	if (all > THREADS * MESSAGES + MESSAGES / 2)
		errx(1, "the process slept %ld times", all);
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
