/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first messages to a process cause few page faults at either end, although each message is the
 * first one in its buffer of the inbox.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "populate.h"

#define WARM_UP  (2 * ENDPOINT_DEPTH) /* messages that use each entry of each queue */
#define MESSAGES 300 /* after the warm-up; the inbox has more buffers than all messages */
#define SKIPPED  77  /* exit status of a skipped test in meson */
#define FAULTS   100 /* for other memory of the program, and for faults that map several pages */

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = 4096,
};

static struct endpoint ep;

static long faults(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used))
		err(1, "getrusage");
	return used.ru_minflt;
}

static void check_faults(const char *who, long before)
{
	long n = faults() - before;

	if (n > FAULTS)
		errx(1, "%s: %ld page faults for %d messages", who, n, MESSAGES);
}

static void receive(int fd)
{
	long before = 0;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < WARM_UP + MESSAGES; i++) {
		if (i == WARM_UP)
			before = faults();
		endpoint_post_recv(&ep, i, 0, 0);
		exchange_send(fd, "", 1);
		endpoint_success(&ep);
	}
	check_faults("the receiver", before);
	endpoint_close(&ep);
	exit(0);
}

static void send_message(int fd)
{
	char ready;

	exchange_recv(fd, &ready, 1);
	endpoint_post_send(&ep);
	endpoint_success(&ep);
}

static void send_all(int fd)
{
	long before = 0;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < WARM_UP + MESSAGES; i++) {
		if (i == WARM_UP)
			before = faults();
		send_message(fd);
	}
	check_faults("the sender", before);
	endpoint_close(&ep);
}

int main(void)
{
	int fd;
	pid_t child;

	if (!kernel_populates()) {
		puts("this kernel has no MADV_POPULATE_WRITE");
		return SKIPPED;
	}
	child = exchange_fork(&fd);
	if (!child)
		receive(fd);
	send_all(fd);
	exchange_join(child);
	return 0;
}
