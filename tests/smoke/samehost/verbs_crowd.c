/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several processes send to one receiver without pause. The receiver stops or kills them at random
 * moments, checks every byte, and must continue to receive from the other senders.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

#define SENDERS 3
#define ROUNDS  24
#define SIZE    8192
#define DEPTH   16
#define PATIENT 60 /* s for a few messages of a sender on a busy machine */
#define ENOUGH  50 /* messages that each sender must deliver while another one is stopped */

struct sender {
	pid_t pid;
	struct endpoint ep;
	uint32_t next; /* number of the sender's next message */
	bool stopped;
};

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_1024,
	.size = DEPTH * SIZE,
};

/* The first word of a message is its number, which is also the seed of the rest. */
static uint32_t message_size(uint32_t number)
{
	return 64 + number * 977 % (SIZE - 64);
}

static uint8_t *slot(const struct endpoint *ep, uint64_t index)
{
	return ep->memory + index * SIZE;
}

static struct ibv_sge segment(const struct endpoint *ep, uint64_t index, uint32_t size)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)slot(ep, index), .length = size, .lkey = ep->mr->lkey};
}

/* --- A sender, which sends until it is killed */

static void post_send(struct endpoint *ep, uint32_t number)
{
	uint32_t size = message_size(number);
	struct ibv_sge sge = segment(ep, number % DEPTH, size);
	struct ibv_send_wr wr = {.wr_id = number,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	pattern_fill(slot(ep, number % DEPTH), number, size);
	memcpy(slot(ep, number % DEPTH), &number, sizeof(number));
	if (ibv_post_send(ep->qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

/* Without a time limit, because this process may be stopped meanwhile. */
static void await_completion(struct endpoint *ep)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(ep->cq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		errx(1, "completion of a send: %s",
		     n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
}

static _Noreturn void send_for_ever(int fd)
{
	struct endpoint ep = {0};
	uint32_t number = 0;

	endpoint_open(&ep, &attr, fd);
	for (; number < DEPTH; number++)
		post_send(&ep, number);
	for (;; number++) {
		await_completion(&ep);
		post_send(&ep, number);
	}
}

/* --- The receiver */

static void post_recv(struct endpoint *ep, uint64_t index)
{
	struct ibv_sge sge = segment(ep, index, SIZE);
	struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(ep->qp, &wr, &bad))
		errx(1, "ibv_post_recv");
}

static void start(struct sender *sender)
{
	char fd[16];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		err(1, "socketpair");
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	*sender = (struct sender){.pid = fork()};
	if (sender->pid == 0) {
		execl("/proc/self/exe", "verbs_crowd", fd, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	endpoint_open(&sender->ep, &attr, pair[0]);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_recv(&sender->ep, i);
	close(pair[0]);
}

static void finish(struct sender *sender)
{
	kill(sender->pid, SIGKILL);
	waitpid(sender->pid, NULL, 0);
	endpoint_close(&sender->ep);
}

static void check_message(struct sender *sender, const struct ibv_wc *wc)
{
	const uint8_t *data = slot(&sender->ep, wc->wr_id);
	uint32_t number;

	memcpy(&number, data, sizeof(number));
	if (number != sender->next || wc->byte_len != message_size(number))
		errx(1, "message %u of %u bytes came where %u was due", number, wc->byte_len,
		     sender->next);
	if (pattern_differs(data + 4, number, 4, wc->byte_len - 4))
		errx(1, "message %u has wrong bytes", number);
	sender->next++;
}

/* Takes a limited number of messages, so that one fast sender does not delay the others. */
static void receive(struct sender *sender)
{
	struct ibv_wc wc;

	for (int i = 0; i < DEPTH && ibv_poll_cq(sender->ep.cq, 1, &wc) > 0; i++) {
		if (wc.status != IBV_WC_SUCCESS)
			errx(1, "completion: %s", ibv_wc_status_str(wc.status));
		check_message(sender, &wc);
		post_recv(&sender->ep, wc.wr_id);
	}
}

/* Receives until each sender that is not stopped has delivered some more messages. */
static void receive_some(struct sender *senders)
{
	time_t end = time(NULL) + PATIENT;
	uint32_t goal[SENDERS];
	bool all;

	for (int i = 0; i < SENDERS; i++)
		goal[i] = senders[i].stopped ? senders[i].next : senders[i].next + ENOUGH;
	do {
		all = true;
		for (int i = 0; i < SENDERS; i++) {
			receive(&senders[i]);
			all &= (int32_t)(senders[i].next - goal[i]) >= 0;
		}
		if (time(NULL) > end)
			errx(1, "a sender that nobody stopped gets nothing through");
	} while (!all);
}

static void stop_or_kill(struct sender *senders, struct sender *victim, bool to_death)
{
	/* At a random point of the victim's work. */
	usleep((useconds_t)(rand() % 1000));
	kill(victim->pid, SIGSTOP);
	victim->stopped = true;
	receive_some(senders);
	if (to_death) {
		finish(victim);
		start(victim);
	} else {
		kill(victim->pid, SIGCONT);
		victim->stopped = false;
	}
	receive_some(senders);
}

int main(int argc, char **argv)
{
	struct sender senders[SENDERS];
	uint32_t total = 0;

	if (argc > 1)
		send_for_ever(atoi(argv[1]));
	srand((unsigned int)getpid());
	for (int i = 0; i < SENDERS; i++)
		start(&senders[i]);
	for (int i = 0; i < ROUNDS; i++)
		stop_or_kill(senders, &senders[rand() % SENDERS], i % 3 == 0);
	for (int i = 0; i < SENDERS; i++) {
		total += senders[i].next;
		finish(&senders[i]);
	}
	printf("%u messages of those that were there at the end, all as sent\n", total);
	return 0;
}
