/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that calls no verb receives a stream of WRITEs in packets. Its engine thread stays
 * awake during the stream, and uses no CPU time in the silence after it. The test runs several
 * streams, with SCHED_FIFO if permitted: on a busy CPU the engine thread sleeps at once, which
 * would hide errors.
 */
#include <err.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define SIZE     65536
#define MESSAGES 500 /* WRITEs of a stream */
#define WINDOW   16
#define STREAMS  8

#define SILENCE_MS 200 /* after each stream */
/* CPU time allowed in all silences together: a hypervisor may interrupt a virtual machine. */
#define IDLE_MS 60

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = SIZE,
};

static int64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Gives this process a real-time priority. Without permission the test still works on an idle
 * machine.
 */
static void set_realtime_priority(int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	sched_setscheduler(0, SCHED_FIFO, &param);
}

/* CPU time of this process in the silence after a stream; the sender waits meanwhile. */
static int64_t silence_ms(int fd)
{
	int64_t before, used;
	char done;

	exchange_recv(fd, &done, sizeof(done));
	before = cpu_ms();
	poll(NULL, 0, SILENCE_MS);
	used = cpu_ms() - before;
	exchange_send(fd, &done, sizeof(done));
	return used;
}

static void receive(int fd)
{
	struct endpoint ep = {0};
	int64_t used = 0;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < STREAMS; i++)
		used += silence_ms(fd);
	for (uint32_t i = 0; i < SIZE; i++)
		if (ep.memory[i] != (uint8_t)(i * 7))
			errx(1, "byte %u is %#x", i, ep.memory[i]);
	if (used >= IDLE_MS)
		errx(1, "%d ms of processor time in %d ms of silence", (int)used,
		     STREAMS * SILENCE_MS);
	endpoint_close(&ep);
	exit(0);
}

static void stream(struct endpoint *ep)
{
	struct ibv_sge sge = {(uintptr_t)ep->memory, SIZE, ep->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {ep->remote_addr, ep->rkey}},
			   *bad;

	for (int posted = 0, done = 0; done < MESSAGES; done++) {
		for (; posted < MESSAGES && posted - done < WINDOW; posted++)
			if (ibv_post_send(ep->qp, &wr, &bad))
				errx(1, "ibv_post_send");
		endpoint_success(ep);
	}
}

int main(void)
{
	struct endpoint ep = {0};
	int fds[2], status;
	char done = 1;
	pid_t child;

	if (setenv("URXE_TRANSPORT", "packet", 1) || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		err(1, "cannot begin");
	set_realtime_priority(1);
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		close(fds[0]);
		set_realtime_priority(2);
		receive(fds[1]);
	}
	close(fds[1]);
	endpoint_open(&ep, &attr, fds[0]);
	for (uint32_t i = 0; i < SIZE; i++)
		ep.memory[i] = (uint8_t)(i * 7);
	for (int i = 0; i < STREAMS; i++) {
		stream(&ep);
		exchange_send(fds[0], &done, sizeof(done));
		exchange_recv(fds[0], &done, sizeof(done));
	}
	endpoint_close(&ep);
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the receiver: status %#x", status);
	return 0;
}
