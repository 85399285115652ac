/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * WRITEs in packets, one after the other, to a process that calls no verb: its engine's thread
 * takes them in, and is awake for as long as they come. Then it sleeps: silence costs no processor
 * time. Several times, and where it may before all other programs: on a core that others want the
 * thread sleeps at once, and there would be nothing to see.
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
#define MESSAGES 500 /* of a stream */
#define WINDOW   16
#define STREAMS  8

#define SILENCE_MS 200 /* after each */
/* Of the silence of all. It has nothing to do, but a virtual machine may be held up meanwhile. */
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
 * Before all other programs, and those of a lower priority. Where it may not, a machine that has
 * nothing else to do sees as much.
 */
static void go_before(int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	sched_setscheduler(0, SCHED_FIFO, &param);
}

/* Processor time of the process in the silence after a stream, whose sender waits for its end. */
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
	go_before(1);
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		close(fds[0]);
		go_before(2);
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
