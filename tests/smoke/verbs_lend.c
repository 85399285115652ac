/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of large SENDs out of memory that each message fills anew, to a process that looks at
 * each byte. In the middle of it the program does what takes memory away from its peers again, or
 * has them leave it: it forks, protects what it sends, gives pages up, locks its memory.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

#define SIZE 65539u /* of a message: its last packet is padded */
/* With a page behind it that no message needs. */
#define STRIDE   (18u * 4096)
#define SLOTS    8u
#define MESSAGES 200u /* of a stream, in whose middle something happens */
#define ROOM     (SLOTS * STRIDE)

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = ROOM,
};

static struct endpoint ep;
static uint8_t *memory; /* that is sent from */

/* --- What happens. */

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

/* Memory behind what is sent. */
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

static void do_mlockall(void)
{
	if (!mlockall(MCL_CURRENT | MCL_ONFAULT))
		munlockall();
}

/* The last one ends it. */
static void (*const events[])(void) = {nothing,    do_fork,       do_mprotect,
				       do_madvise, register_more, do_mlockall};

#define STREAMS (sizeof(events) / sizeof(events[0]))

/* --- */

static void receive(int fd)
{
	char end;

	endpoint_open(&ep, &attr, fd);
	for (uint32_t i = 0; i < SLOTS; i++)
		endpoint_post_recv(&ep, i, i * STRIDE, SIZE);
	exchange_send(fd, "", 1);
	for (uint32_t i = 0; i < STREAMS * MESSAGES; i++) {
		struct ibv_wc wc = endpoint_success(&ep);
		uint32_t at = (uint32_t)wc.wr_id * STRIDE;
		uint32_t wrong = pattern_differs(ep.memory + at, i, 0, SIZE);

		if (wc.byte_len != SIZE || wrong)
			errx(1, "message %u: %u bytes, %u wrong", i, wc.byte_len, wrong);
		endpoint_post_recv(&ep, wc.wr_id, at, SIZE);
	}
	exchange_recv(fd, &end, 1);
	endpoint_close(&ep);
	exit(0);
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

static void stream(uint32_t first, void (*event)(void))
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
	uint32_t posted = 0;

	if (!mr)
		err(1, "ibv_reg_mr");
	for (uint32_t done = 0; done < MESSAGES; done++) {
		for (; posted < MESSAGES && posted - done < SLOTS; posted++)
			post(mr, first + posted);
		if (done == MESSAGES / 2)
			event();
		endpoint_success(&ep);
	}
	if (ibv_dereg_mr(mr))
		errx(1, "ibv_dereg_mr");
}

static void send_all(int fd)
{
	char ready;

	endpoint_open(&ep, &attr, fd);
	memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	exchange_recv(fd, &ready, 1);
	for (uint32_t i = 0; i < STREAMS; i++)
		stream(i * MESSAGES, events[i]);
	exchange_send(fd, "", 1);
	endpoint_close(&ep);
}

int main(void)
{
	int fd;
	pid_t child = exchange_fork(&fd);

	if (!child)
		receive(fd);
	send_all(fd);
	exchange_join(child);
	return 0;
}
