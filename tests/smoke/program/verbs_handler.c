/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A signal handler interrupts ibv_get_cq_event: it polls the CQ and returns, or leaves by a jump.
 * In both cases the next message raises an event.
 */
#include <err.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "asleep.h"
#include "endpoint.h"
#include "exchange.h"

#define TIMES   3
#define WAIT_MS 60000

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.events = true,
	.size = 4096,
};

static struct endpoint ep;
static sigjmp_buf out;

static void look(int number)
{
	struct ibv_wc wc;

	(void)number;
	if (ibv_poll_cq(ep.cq, 1, &wc))
		errx(1, "a message that nobody has sent");
}

static void leave(int number)
{
	siglongjmp(out, number);
}

static void arm(void (*handler)(int))
{
	const struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

	if (sigaction(SIGUSR1, &act, NULL) || ibv_req_notify_cq(ep.cq, 0))
		err(1, "cannot wait");
}

static void receive_after_look(int fd)
{
	arm(look);
	exchange_send(fd, "", 1);
	endpoint_await_event(&ep);
	endpoint_success(&ep);
	exchange_send(fd, "", 1);
}

/* The program calls no other verb between the jump and the next wait. */
static void receive_after_leave(int fd)
{
	struct pollfd pfd = {ep.channel->fd, POLLIN, 0};

	arm(leave);
	exchange_send(fd, "", 1);
	if (!sigsetjmp(out, 1)) {
		endpoint_await_event(&ep);
		errx(1, "an event that nothing has raised");
	}
	exchange_send(fd, "", 1);
	if (poll(&pfd, 1, WAIT_MS) != 1)
		errx(1, "no event comes after a wait that was left");
	endpoint_await_event(&ep);
	endpoint_success(&ep);
}

static void receive(int fd)
{
	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < 2 * TIMES; i++)
		endpoint_post_recv(&ep, i, 0, 0);
	for (int i = 0; i < TIMES; i++)
		receive_after_look(fd);
	for (int i = 0; i < TIMES; i++)
		receive_after_leave(fd);
	endpoint_close(&ep);
	exit(0);
}

static void await(int fd)
{
	char said;

	exchange_recv(fd, &said, 1);
}

static void send_message(void)
{
	endpoint_post_send(&ep);
	endpoint_success(&ep);
}

static void send_to(pid_t receiver, int fd)
{
	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < 2 * TIMES; i++) {
		await(fd);
		asleep_await(receiver);
		kill(receiver, SIGUSR1);
		if (i >= TIMES)
			await(fd);
		asleep_await(receiver);
		send_message();
		if (i < TIMES)
			await(fd);
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
