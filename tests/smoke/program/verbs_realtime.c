/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two programs with a real-time policy, each on a processor of its own, which its engine thread
 * shares, spin on memory that the other one writes to.
 */
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define SKIP         77
#define TURNS        100
#define HANG_SECONDS 60
#define SIZE         4096
#define THERE        (SIZE / 2) /* where the peer writes to */

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.size = SIZE,
};

static struct endpoint ep;

static void write_turn(uint8_t turn)
{
	struct ibv_sge sge = {(uintptr_t)ep.memory, 1, ep.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {ep.remote_addr + THERE, ep.rkey}};
	struct ibv_send_wr *bad;

	ep.memory[0] = turn;
	if (ibv_post_send(ep.qp, &wr, &bad))
		err(1, "cannot post");
}

static void await_turn(uint8_t turn)
{
	const volatile uint8_t *there = ep.memory + THERE;

	while (*there != turn)
		;
}

static void take_turns(int fd, bool first)
{
	char ready;

	/* Processes that hang take the whole machine. */
	alarm(HANG_SECONDS);
	endpoint_open(&ep, &attr, fd);
	exchange_send(fd, "", 1);
	exchange_recv(fd, &ready, 1);
	for (uint8_t turn = 1; turn <= TURNS; turn++) {
		if (!first)
			await_turn(turn);
		write_turn(turn);
		if (first)
			await_turn(turn);
		endpoint_success(&ep);
	}
	exchange_send(fd, "", 1);
	exchange_recv(fd, &ready, 1);
	endpoint_close(&ep);
}

/* False: the machine has no such processor, or the process may not have the policy. */
static bool become_realtime(int processor)
{
	const struct sched_param param = {.sched_priority = 10};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return !sched_setaffinity(0, sizeof(set), &set) &&
	       !sched_setscheduler(0, SCHED_FIFO, &param);
}

int main(void)
{
	pid_t child;
	int fd;

	if (!become_realtime(0) || !become_realtime(1)) {
		puts("not two processors, or no real-time policy");
		return SKIP;
	}
	child = exchange_fork(&fd);
	if (child && !become_realtime(0))
		err(1, "no first processor");
	take_turns(fd, child);
	if (child)
		exchange_join(child);
	return 0;
}
