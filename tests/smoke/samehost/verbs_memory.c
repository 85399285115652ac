/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A writer process WRITEs to the memory of this process as fast as it can, and is stopped or killed
 * meanwhile. Once this process has deregistered the region, or mapped other memory over it, the
 * writer changes no byte of it. Neither call waits for a stopped or dead writer. A child that this
 * process forks meanwhile has memory that the writer does not change.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

#define ROUNDS   18
#define SIZE     (256u * 1024)
#define PATIENT  60 /* s, on a busy machine */
#define OURS     0xee
#define CHILD_US 20000 /* how long a child watches its memory */

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = SIZE,
};

/* --- The writer, which writes until the engine refuses it */

static void post_write(struct endpoint *ep, uint32_t number)
{
	/* From short WRITEs, whose time is mostly the system call, to the whole region. */
	uint32_t size = SIZE >> number % 18;
	struct ibv_sge sge = {.addr = (uintptr_t)ep->memory, .length = size, .lkey = ep->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = ep->remote_addr;
	wr.wr.rdma.rkey = ep->rkey;
	if (ibv_post_send(ep->qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

static enum ibv_wc_status next_status(struct endpoint *ep)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(ep->cq, 1, &wc)))
		;
	if (n < 0)
		errx(1, "ibv_poll_cq");
	return wc.status;
}

static int write_until_refused(int fd)
{
	struct endpoint ep = {0};
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	endpoint_open(&ep, &attr, fd);
	memset(ep.memory, 1, SIZE);
	for (uint32_t i = 0; status == IBV_WC_SUCCESS; i++) {
		post_write(&ep, i);
		status = next_status(&ep);
	}
	if (status != IBV_WC_REM_ACCESS_ERR)
		errx(1, "a write ends in: %s", ibv_wc_status_str(status));
	endpoint_close(&ep);
	return 0;
}

/* --- The owner of the memory */

static pid_t start(struct endpoint *ep)
{
	char fd[16];
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		err(1, "socketpair");
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "verbs_memory", fd, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	*ep = (struct endpoint){0};
	endpoint_open(ep, &attr, pair[0]);
	close(pair[0]);
	return pid;
}

static void await_writes(const struct endpoint *ep)
{
	const volatile uint8_t *last = ep->memory + SIZE - 1;
	time_t end = time(NULL) + PATIENT;

	while (*last != 1)
		if (time(NULL) > end)
			errx(1, "nothing is written");
	/* At a random point of the writer's work. */
	usleep((useconds_t)(rand() % 1000));
}

static void expect_ours(const struct endpoint *ep)
{
	for (uint32_t i = 0; i < SIZE; i++)
		if (ep->memory[i] != OURS)
			errx(1, "byte %u was written after the memory was the region's no longer",
			     i);
}

/* endpoint_close deregisters a region, so this registers a second one for it. */
static void give_back(struct endpoint *ep)
{
	if (ibv_dereg_mr(ep->mr))
		errx(1, "ibv_dereg_mr");
	memset(ep->memory, OURS, SIZE);
	ep->mr = ibv_reg_mr(ep->pd, ep->memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!ep->mr)
		errx(1, "ibv_reg_mr");
}

/* Leaves the pages alone that the region shares with other allocations. */
static void map_over(struct endpoint *ep)
{
	uint8_t *fresh = mmap(ep->memory, SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);

	if (fresh != ep->memory)
		err(1, "mmap at a place");
	/* Any byte that differs already was written after the mapping call. */
	for (uint32_t i = 0; i < SIZE; i++)
		if (fresh[i])
			errx(1, "byte %u was written while the memory was mapped over", i);
	memset(fresh, OURS, SIZE);
}

/* The writer's copies continue to change the parent's memory, and none of the child's. */
static void fork_and_give_back(struct endpoint *ep)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		err(1, "fork");
	if (!child) {
		memset(ep->memory, OURS, SIZE);
		usleep(CHILD_US);
		expect_ours(ep);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the child ends with %#x", (unsigned int)status);
	give_back(ep);
}

/* Sends the writer a signal during its work; 0 = no signal. */
static void strike(int number, void (*take)(struct endpoint *ep))
{
	struct endpoint ep;
	pid_t pid = start(&ep);
	int status;

	await_writes(&ep);
	if (number && kill(pid, number))
		err(1, "kill");
	take(&ep);
	if (number == SIGSTOP && kill(pid, SIGCONT))
		err(1, "kill");
	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	if (number == SIGKILL ? !WIFSIGNALED(status) : status)
		errx(1, "the writer ends with %#x", (unsigned int)status);
	expect_ours(&ep);
	endpoint_close(&ep);
}

int main(int argc, char **argv)
{
	static const int numbers[] = {0, SIGSTOP, SIGKILL};
	static void (*const takes[])(struct endpoint *) = {give_back, map_over, fork_and_give_back};

	if (argc > 1)
		return write_until_refused(atoi(argv[1]));
	srand((unsigned int)getpid());
	for (int i = 0; i < ROUNDS; i++)
		strike(numbers[i % 3], takes[i / 3 % 3]);
	printf("%d writers came to an end\n", ROUNDS);
	return 0;
}
