/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large SENDs, whose every byte the receiver checks. During the stream the sender forks,
 * write-protects the payload, or gives up pages. In other runs the sender's QP is flushed, or the
 * sender deregisters or unmaps the payload, and overwrites it at once, or the sender is killed. The
 * receiver must never see a changed payload.
 */
#include <err.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

#define SIZE 65539u /* of a message, with padding in its last packet */
/* A message and a page behind it. */
#define STRIDE   (18u * 4096)
#define SLOTS    8u
#define MESSAGES 200u  /* of a stream; the event comes after half of them */
#define ROUNDS   40u   /* each with a flush or the death of the sender */
#define STOPS    12u   /* of the receiver, while the sender withdraws the payload */
#define QUIET_US 20000 /* in which the receiver handles all packets that it got */
#define ROOM     (SLOTS * STRIDE)

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = ROOM,
};

static struct endpoint ep;
static uint8_t *memory; /* payloads of the sender */

/* --- Events in the middle of a stream */

static void nothing(void)
{
}

static void do_fork(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		errx(1, "a child of the sender");
}

static void do_mprotect(void)
{
	if (mprotect(memory, ROOM, PROT_READ) || mprotect(memory, ROOM, PROT_READ | PROT_WRITE))
		err(1, "mprotect");
}

/* Gives up the pages behind the messages. */
static void do_madvise(void)
{
	if (madvise(memory + ROOM - 4096, 4096, MADV_DONTNEED))
		err(1, "madvise");
}

static void register_more(void)
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, memory + 4096, 8192, IBV_ACCESS_LOCAL_WRITE);

	if (!mr || ibv_dereg_mr(mr))
		errx(1, "a second region");
}

static void (*const events[])(void) = {nothing, do_fork, do_mprotect, do_madvise, register_more};

#define STREAMS (sizeof(events) / sizeof(events[0]))

/* --- The receiver */

static void post_all(void)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		endpoint_post_recv(&ep, i, i * STRIDE, SIZE);
}

static void check(const struct ibv_wc *wc, uint32_t number)
{
	uint32_t wrong = pattern_differs(ep.memory + wc->wr_id * STRIDE, number, 0, SIZE);

	if (wc->byte_len != SIZE || wrong)
		errx(1, "message %u: %u bytes, %u wrong", number, wc->byte_len, wrong);
}

static void *poll_next(void *wc)
{
	while (ibv_poll_cq(ep.cq, 1, wc) == 0)
		;
	return NULL;
}

/* In a thread with the smallest stack, which runs the engine while it polls. */
static struct ibv_wc next_on_small_stack(void)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	if (pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN) ||
	    pthread_create(&thread, &small, poll_next, &wc) || pthread_join(thread, NULL))
		errx(1, "a thread with a small stack");
	if (wc.status)
		errx(1, "completion: %s", ibv_wc_status_str(wc.status));
	return wc;
}

static void receive_streams(int fd)
{
	char end;

	endpoint_open(&ep, &attr, fd);
	post_all();
	exchange_send(fd, "", 1);
	for (uint32_t i = 0; i < STREAMS * MESSAGES; i++) {
		struct ibv_wc wc = next_on_small_stack();

		check(&wc, i);
		endpoint_post_recv(&ep, wc.wr_id, (uint32_t)wc.wr_id * STRIDE, SIZE);
	}
	exchange_recv(fd, &end, 1);
	endpoint_close(&ep);
}

/* Checks all messages until the sender reports the last one or ends. Returns their number. */
static uint32_t receive_some(int fd)
{
	struct pollfd told = {.fd = fd, .events = POLLIN};
	uint32_t number = 0;
	struct ibv_wc wc;
	bool last;

	do {
		last = poll(&told, 1, 0) > 0;
		while (ibv_poll_cq(ep.cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return number;
			check(&wc, number++);
			endpoint_post_recv(&ep, wc.wr_id, (uint32_t)wc.wr_id * STRIDE, SIZE);
		}
	} while (!last);
	return number;
}

static uint32_t receive_rounds(int fd)
{
	uint32_t n = 0;
	char byte;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		endpoint_open(&ep, &attr, fd);
		post_all();
		exchange_send(fd, "", 1);
		n += receive_some(fd);
		exchange_recv(fd, &byte, 1);
		endpoint_close(&ep);
	}
	return n;
}

/* --- The sender */

static struct ibv_mr *open_sender(int fd)
{
	struct ibv_mr *mr;
	char ready;

	endpoint_open(&ep, &attr, fd);
	if (!memory)
		memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	mr = ibv_reg_mr(ep.pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		err(1, "ibv_reg_mr");
	exchange_recv(fd, &ready, 1);
	return mr;
}

static void close_sender(struct ibv_mr *mr)
{
	if (ibv_dereg_mr(mr))
		errx(1, "ibv_dereg_mr");
	endpoint_close(&ep);
}

static void post(const struct ibv_mr *mr, uint32_t number)
{
	uint8_t *at = memory + number % SLOTS * STRIDE;
	struct ibv_sge sge = {(uintptr_t)at, SIZE, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	pattern_fill(at, number, SIZE);
	if (ibv_post_send(ep.qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

static void stream(const struct ibv_mr *mr, uint32_t first, void (*event)(void))
{
	uint32_t posted = 0;

	for (uint32_t done = 0; done < MESSAGES; done++) {
		for (; posted < MESSAGES && posted - done < SLOTS; posted++)
			post(mr, first + posted);
		if (done == MESSAGES / 2)
			event();
		endpoint_success(&ep);
	}
}

static void send_streams(int fd)
{
	struct ibv_mr *mr = open_sender(fd);

	for (uint32_t i = 0; i < STREAMS; i++)
		stream(mr, i * MESSAGES, events[i]);
	exchange_send(fd, "", 1);
	close_sender(mr);
}

/* The program owns the memory again when the QP is in the error state. */
static void flush_and_overwrite(void)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	if (ibv_modify_qp(ep.qp, &error, IBV_QP_STATE))
		errx(1, "a queue pair to the error state");
	memset(memory, 0xee, ROOM);
}

static void send_flushed(int fd)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr = open_sender(fd);
		uint32_t number = 0;

		/* First waits for some messages to arrive, then posts a full queue. */
		for (; number < i % SLOTS; number++) {
			post(mr, number);
			endpoint_success(&ep);
		}
		for (uint32_t n = 0; n < SLOTS; n++)
			post(mr, number++);
		if (i % 2)
			usleep((useconds_t)(rand() % 100));
		flush_and_overwrite();
		exchange_send(fd, "", 1);
		close_sender(mr);
	}
}

static void send_until_killed(int fd)
{
	struct ibv_mr *mr = open_sender(fd);

	for (uint32_t number = 0;; number++) {
		if (number >= SLOTS)
			endpoint_success(&ep);
		post(mr, number);
	}
}

/* --- */

/* This process is the receiver, because the sender is killed. */
static void kill_senders(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ROUNDS / 4; i++) {
		int fd;
		pid_t child = exchange_fork(&fd);

		if (!child)
			send_until_killed(fd);
		endpoint_open(&ep, &attr, fd);
		post_all();
		exchange_send(fd, "", 1);
		while (n < 20 * (i + 1)) {
			struct ibv_wc wc = endpoint_success(&ep);

			check(&wc, n++ - 20 * i);
			endpoint_post_recv(&ep, wc.wr_id, (uint32_t)wc.wr_id * STRIDE, SIZE);
		}
		kill(child, SIGKILL);
		for (uint32_t more = 20; waitpid(child, NULL, WNOHANG) == 0;) {
			struct ibv_wc wc;

			if (ibv_poll_cq(ep.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS)
				check(&wc, more++);
		}
		endpoint_close(&ep);
		close(fd);
	}
}

/* --- Payloads that the sender withdraws before the receiver has copied them */

static struct ibv_mr *deregister(struct ibv_mr *mr)
{
	if (ibv_dereg_mr(mr))
		errx(1, "ibv_dereg_mr");
	return NULL;
}

static struct ibv_mr *map_over(struct ibv_mr *mr)
{
	if (mmap(memory, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != memory)
		err(1, "mmap at a place");
	return mr;
}

static struct ibv_mr *unmap(struct ibv_mr *mr)
{
	if (munmap(memory, ROOM))
		err(1, "munmap");
	return map_over(mr);
}

static struct ibv_mr *(*const withdrawals[])(struct ibv_mr *) = {deregister, map_over, unmap};

static void stop(pid_t pid)
{
	int status;

	usleep(QUIET_US);
	if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		errx(1, "the receiver does not stop");
}

/* The message waits in the stopped receiver's inbox while the sender withdraws the payload. */
static void send_and_withdraw(int fd, pid_t receiver, struct ibv_mr *(*take)(struct ibv_mr *))
{
	struct ibv_mr *mr = open_sender(fd);
	uint32_t number = 0;

	for (; number < SLOTS / 2; number++) {
		post(mr, number);
		endpoint_success(&ep);
	}
	stop(receiver);
	post(mr, number);
	mr = take(mr);
	memset(memory, 0xee, ROOM);
	if (kill(receiver, SIGCONT))
		err(1, "kill");
	endpoint_completion(&ep);
	usleep(QUIET_US);
	exchange_send(fd, "", 1);
	if (mr && ibv_dereg_mr(mr))
		errx(1, "ibv_dereg_mr");
	endpoint_close(&ep);
}

static void receive_until_withdrawn(int fd)
{
	char byte;

	endpoint_open(&ep, &attr, fd);
	post_all();
	exchange_send(fd, "", 1);
	receive_some(fd);
	exchange_recv(fd, &byte, 1);
	endpoint_close(&ep);
}

static void withdraw_payloads(void)
{
	for (uint32_t i = 0; i < STOPS; i++) {
		int fd;
		pid_t child = exchange_fork(&fd);

		if (!child) {
			receive_until_withdrawn(fd);
			exit(0);
		}
		send_and_withdraw(fd, child, withdrawals[i % 3]);
		exchange_join(child);
		close(fd);
	}
}

/* --- */

static void run(void (*send)(int fd), void (*receive)(int fd))
{
	int fd;
	pid_t child = exchange_fork(&fd);

	if (!child) {
		receive(fd);
		exit(0);
	}
	send(fd);
	exchange_join(child);
	close(fd);
}

static void receive_flushed(int fd)
{
	/* At least all acknowledged messages must have arrived. */
	if (receive_rounds(fd) < ROUNDS / SLOTS * (SLOTS * (SLOTS - 1) / 2))
		errx(1, "messages that were acknowledged did not arrive");
}

int main(void)
{
	run(send_streams, receive_streams);
	run(send_flushed, receive_flushed);
	withdraw_payloads();
	kill_senders();
	return 0;
}
