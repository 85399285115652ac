/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receiver that takes its completion and then calls no verb any more: it ends, in one of
 * several ways, or waits for something else. Its peer's SEND must complete all the same: an
 * HCA has acknowledged by then.
 */
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define TIMES 8
#define SIZE  4096

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.size = SIZE,
};

static void close_context(struct endpoint *ep, int fd)
{
	(void)fd;
	endpoint_close(ep);
}

static void leave(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	exit(0);
}

static void leave_at_once(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	_exit(0);
}

static void execute(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	execl("/bin/true", "true", (char *)NULL);
	err(1, "execl");
}

static void die(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	kill(getpid(), SIGKILL);
}

/* Until the sender says that its request is complete. */
static void wait_elsewhere(struct endpoint *ep, int fd)
{
	char done;

	(void)ep;
	exchange_recv(fd, &done, sizeof(done));
}

static const struct farewell {
	const char *name;
	void (*run)(struct endpoint *ep, int fd);
	bool told;  /* it waits for the sender */
	int status; /* as of waitpid */
} farewells[] = {
	{"closes its device", close_context, false, 0},
	{"calls exit", leave, false, 0},
	{"calls _exit", leave_at_once, false, 0},
	{"executes another program", execute, false, 0},
	{"is killed", die, false, SIGKILL},
	{"waits for something else", wait_elsewhere, true, 0},
};

static void receive(const struct farewell *farewell, int fd)
{
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_sge sge = {0};
	struct endpoint ep = {0};
	char ready = 1;

	endpoint_open(&ep, &attr, fd);
	sge = (struct ibv_sge){(uintptr_t)ep.memory, SIZE, ep.mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (ibv_post_recv(ep.qp, &wr, &bad))
		errx(1, "ibv_post_recv");
	exchange_send(fd, &ready, sizeof(ready));
	endpoint_success(&ep);
	farewell->run(&ep, fd);
	_exit(0);
}

static void send_to(const struct farewell *farewell, int fd)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_sge sge = {0};
	struct endpoint ep = {0};
	char ready;

	endpoint_open(&ep, &attr, fd);
	sge = (struct ibv_sge){(uintptr_t)ep.memory, 8, ep.mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	exchange_recv(fd, &ready, sizeof(ready));
	if (ibv_post_send(ep.qp, &wr, &bad))
		errx(1, "ibv_post_send");
	endpoint_success(&ep);
	if (farewell->told)
		exchange_send(fd, &ready, sizeof(ready));
	endpoint_close(&ep);
}

static void check(const struct farewell *farewell)
{
	int fds[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		err(1, "socketpair");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		close(fds[0]);
		receive(farewell, fds[1]);
	}
	close(fds[1]);
	send_to(farewell, fds[0]);
	close(fds[0]);
	if (waitpid(child, &status, 0) != child || status != farewell->status)
		errx(1, "the receiver that %s: status %#x", farewell->name, status);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(farewells) / sizeof(farewells[0]); i++)
		for (int n = 0; n < TIMES; n++)
			check(&farewells[i]);
	return 0;
}
