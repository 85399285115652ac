/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first messages to a process wait for no memory: where each takes another buffer of its
 * inbox, and comes for the first time, there are few page faults, at either end.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define WARM_UP  (2 * ENDPOINT_DEPTH) /* messages, in which each place of each queue is used */
#define MESSAGES 300                  /* behind those; all together are fewer than buffers */
#define FAULTS   100 /* for what else a program touches, and a few pages at a time */

/* Not in every libc's headers. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

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
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	char ready;

	exchange_recv(fd, &ready, 1);
	if (ibv_post_send(ep.qp, &wr, &bad))
		errx(1, "ibv_post_send");
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

/* Linux 5.14. */
static bool kernel_populates(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED && !madvise(memory, 4096, MADV_POPULATE_WRITE);
}

int main(void)
{
	int fd;
	pid_t child;

	if (!kernel_populates())
		return 0;
	child = exchange_fork(&fd);
	if (!child)
		receive(fd);
	send_all(fd);
	exchange_join(child);
	return 0;
}
