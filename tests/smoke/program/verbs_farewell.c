/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A receiver polls its completion and then calls no verb again: it ends in one of several ways, or
 * waits for something else. The peer's SEND must still complete, because an HCA acknowledges a
 * message before the program sees its completion. Some receivers end after a ping-pong, in which
 * each side answered at once.
 */
#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define TIMES    8
#define SIZE     4096
#define RECEIVES 4
/* Messages of a ping-pong; on a busy machine it ends sooner. */
#define TURNS   1551
#define TALK_NS 1000000000
/* Much longer than a running process takes to make room, and shorter than frames wait for it. */
#define STUCK_NS 20000000

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.size = SIZE,
};

/* Of the receiver's connection to a stopped process, whose frames nothing acknowledges. */
static const struct endpoint_attr stopped_attr = {
	.device = "urxe0",
	.type = IBV_QPT_UC,
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

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Computes for longer than a SEND takes, and for less than a poll grant lasts. */
static void compute(void)
{
	uint64_t begin = now();

	while (now() - begin < 300000)
		;
}

static void leave_quickly(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	compute();
	quick_exit(0);
}

static void execute(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	compute();
	execl("/bin/true", "true", (char *)NULL);
	err(1, "execl");
}

static void kill_self(struct endpoint *ep, int fd)
{
	(void)ep;
	(void)fd;
	kill(getpid(), SIGKILL);
}

/* Waits until the sender reports that its request is complete. */
static void wait_elsewhere(struct endpoint *ep, int fd)
{
	char done;

	(void)ep;
	exchange_recv(fd, &done, sizeof(done));
}

static const struct farewell {
	const char *name;
	void (*run)(struct endpoint *ep, int fd);
	bool told;  /* the receiver waits for the sender's report */
	bool talks; /* the receiver ends after a ping-pong */
	int status; /* of waitpid */
	bool late;  /* the ping-pong runs in an exit handler */
	bool stuck; /* the receiver's frames to a stopped process wait for room */
} farewells[] = {
	{"closes its device", close_context, false, false, 0},
	{"calls exit", leave, false, false, 0},
	{"calls _exit", leave_at_once, false, false, 0},
	{"executes another program", execute, false, false, 0},
	{"is killed", kill_self, false, false, SIGKILL},
	{"waits for something else", wait_elsewhere, true, false, 0},
	{"closes its device while frames wait", close_context, .stuck = true},
	{"has talked and closes its device", close_context, false, true, 0},
	{"has talked and calls exit", leave, false, true, 0},
	{"talks while it exits", leave, false, true, 0, true},
	{"has talked and calls _exit", leave_at_once, false, true, 0},
	{"has talked and calls quick_exit", leave_quickly, false, true, 0},
	{"has talked and executes another program", execute, false, true, 0},
	{"has talked and is killed", kill_self, false, true, SIGKILL},
	{"has talked and waits for something else", wait_elsewhere, true, true, 0},
};

static void post_send(struct endpoint *ep, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)ep->memory, 8, ep->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = wr_id == TURNS ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				 .send_flags = flags},
			   *bad;

	if (ibv_post_send(ep->qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

/* Gives each side a core of its own on a machine with two or more: one core would be too slow. */
static void pin_to_core(int nth)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Waits for the next message; its receive is posted. */
static struct ibv_wc next_message(struct endpoint *ep)
{
	struct ibv_wc wc;

	do
		wc = endpoint_success(ep);
	while (wc.opcode != IBV_WC_RECV);
	return wc;
}

/* Whether a turn's request is signaled: the requests right before the end are not. */
static unsigned int signalling(int turn)
{
	return turn % 16 ? 0 : IBV_SEND_SIGNALED;
}

static void ping_pong(struct endpoint *ep)
{
	uint64_t begin = now();
	int turn = 0;

	do {
		post_send(ep, turn, signalling(turn));
		next_message(ep);
		endpoint_post_recv(ep, 0, 0, SIZE);
	} while (++turn < TURNS && (turn % 16 != 15 || now() - begin < TALK_NS));
}

/* Answers each message until the last one, which has immediate data. */
static void listen_and_answer(struct endpoint *ep)
{
	for (int turn = 0; !(next_message(ep).wc_flags & IBV_WC_WITH_IMM); turn++) {
		endpoint_post_recv(ep, 0, 0, SIZE);
		post_send(ep, turn, signalling(turn));
	}
}

/* Opens the receiver's connection to a new process, which stops. */
static void meet_stopped_process(struct endpoint *ep)
{
	int fd, status;
	pid_t child = exchange_fork(&fd);

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(ep, &stopped_attr, fd);
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
		errx(1, "the process that stops: status %#x", status);
}

/* Sends until no request completes for some time: the inbox is full. */
static void fill_inbox(struct endpoint *ep)
{
	struct ibv_sge sge = {(uintptr_t)ep->memory, SIZE, ep->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;
	int free = ENDPOINT_DEPTH;

	for (uint64_t since = now(); now() - since < STUCK_NS;) {
		while (free && !ibv_post_send(ep->qp, &wr, &bad))
			free--;
		for (; ibv_poll_cq(ep->cq, 1, &wc); since = now())
			free++;
	}
}

static struct endpoint *listener;

static void listen_at_exit(void)
{
	if (!listener)
		return;
	listen_and_answer(listener);
	compute();
}

static void receive(const struct farewell *farewell, int fd)
{
	struct endpoint ep = {0}, stopped;
	char ready = 1;

	if (farewell->stuck)
		meet_stopped_process(&stopped);
	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < RECEIVES; i++)
		endpoint_post_recv(&ep, 0, 0, SIZE);
	if (farewell->stuck)
		fill_inbox(&stopped);
	exchange_send(fd, &ready, sizeof(ready));
	if (farewell->late)
		listener = &ep;
	else
		listen_and_answer(&ep);
	farewell->run(&ep, fd);
	_exit(0);
}

static void send_to(const struct farewell *farewell, int fd)
{
	struct endpoint ep = {0};
	char ready;

	endpoint_open(&ep, &attr, fd);
	for (int i = 0; i < RECEIVES; i++)
		endpoint_post_recv(&ep, 0, 0, SIZE);
	exchange_recv(fd, &ready, sizeof(ready));
	if (farewell->talks)
		ping_pong(&ep);
	post_send(&ep, TURNS, IBV_SEND_SIGNALED);
	while (endpoint_success(&ep).wr_id != TURNS)
		;
	if (farewell->told)
		exchange_send(fd, &ready, sizeof(ready));
	endpoint_close(&ep);
}

static void check(const struct farewell *farewell)
{
	int fd, status;
	pid_t child = exchange_fork(&fd);

	pin_to_core(!child);
	if (!child)
		receive(farewell, fd);
	send_to(farewell, fd);
	close(fd);
	if (waitpid(child, &status, 0) != child || status != farewell->status)
		errx(1, "the receiver that %s: status %#x", farewell->name, status);
}

int main(void)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		err(1, "sched_getaffinity");
	/* Registered before the device is opened, so it runs after the library's exit handlers. */
	atexit(listen_at_exit);
	for (size_t i = 0; i < sizeof(farewells) / sizeof(farewells[0]); i++)
		for (int n = 0; n < TIMES; n++) {
			check(&farewells[i]);
			sched_setaffinity(0, sizeof(all), &all);
		}
	return 0;
}
