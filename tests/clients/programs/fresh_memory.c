/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fresh_memory GID_INDEX: two processes write and read each other's memory, which neither has
 * initialised, and compare what arrived. A tool that follows each access of a program (valgrind's
 * memcheck, AddressSanitizer, ThreadSanitizer) must find no fault: the device's accesses are not
 * those of the program.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

/* Bytes of a message: inline in the ring, in packets, and long enough for a copy by the kernel. */
static const uint32_t sizes[] = {1, 60, 3000, 70000};
#define SIZES   (sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST 70000
/* Parts of the memory. */
#define SOURCE   0
#define SENT     LARGEST       /* written by the peer's SEND */
#define WRITTEN  (2 * LARGEST) /* by the peer's WRITE */
#define READ     (3 * LARGEST) /* by the own READ */
#define FETCHED  (4 * LARGEST) /* by the own atomic; a multiple of 8 */
#define ROOM     (4 * LARGEST + 8)
#define DATAGRAM 1000

static void post(struct endpoint *ep, enum ibv_wr_opcode opcode, uint32_t at, uint32_t size)
{
	struct ibv_sge sge = {(uintptr_t)ep->memory + at, size, ep->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = ep->remote_addr + WRITTEN;
		wr.wr.atomic.rkey = ep->rkey;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr =
			ep->remote_addr + (opcode == IBV_WR_RDMA_READ ? SOURCE : WRITTEN);
		wr.wr.rdma.rkey = ep->rkey;
	} else if (ep->ah) {
		wr.wr.ud.ah = ep->ah;
		wr.wr.ud.remote_qpn = ep->remote_qpn;
		wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
	}
	if (ibv_post_send(ep->qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

static void expect(const struct endpoint *ep, const char *what, uint32_t at, uint32_t seed,
		   uint32_t size)
{
	if (pattern_differs(ep->memory + at, seed, 0, size))
		errx(1, "%s of %u bytes: wrong contents", what, size);
}

/* Waits until both sides have come here. */
static void meet(int fd)
{
	char byte = 0;

	exchange_send(fd, &byte, 1);
	exchange_recv(fd, &byte, 1);
}

/* Each side has a seed of its own. */
static void exchange_messages(struct endpoint *ep, int fd, uint32_t own, uint32_t peers,
			      uint32_t size)
{
	pattern_fill(ep->memory + SOURCE, own, size);
	endpoint_post_recv(ep, 0, SENT, size);
	meet(fd);
	post(ep, IBV_WR_RDMA_WRITE, SOURCE, size);
	post(ep, IBV_WR_RDMA_READ, READ, size);
	post(ep, IBV_WR_SEND, SOURCE, size);
	for (int i = 0; i < 4; i++)
		endpoint_success(ep);
	expect(ep, "SEND", SENT, peers, size);
	expect(ep, "WRITE", WRITTEN, peers, size);
	expect(ep, "READ", READ, peers, size);
	meet(fd);
}

static void fetch(struct endpoint *ep)
{
	post(ep, IBV_WR_ATOMIC_FETCH_AND_ADD, FETCHED, 8);
	endpoint_success(ep);
	/* The value is what the last WRITE left there, of either seed. */
	if (!*(uint64_t *)(ep->memory + FETCHED))
		errx(1, "an atomic read 0");
}

static void exchange_datagrams(struct endpoint *ep, int fd, uint32_t own, uint32_t peers)
{
	pattern_fill(ep->memory + SOURCE, own, DATAGRAM);
	endpoint_post_recv(ep, 0, SENT, DATAGRAM);
	meet(fd);
	post(ep, IBV_WR_SEND, SOURCE, DATAGRAM);
	endpoint_success(ep);
	endpoint_success(ep);
	expect(ep, "datagram", SENT, peers, DATAGRAM);
	meet(fd);
}

static void converse(int fd, uint8_t gid_index, uint32_t own, uint32_t peers)
{
	struct endpoint_attr attr = {
		.device = "urxe0",
		.type = IBV_QPT_RC,
		.gid_index = gid_index,
		.mtu = IBV_MTU_1024,
		.size = ROOM,
		.timeout = 18,
	};
	struct endpoint ep = {0};

	endpoint_open(&ep, &attr, fd);
	for (uint32_t i = 0; i < SIZES; i++)
		exchange_messages(&ep, fd, own, peers, sizes[i]);
	fetch(&ep);
	meet(fd);
	endpoint_close(&ep);

	attr.type = IBV_QPT_UD;
	ep = (struct endpoint){0};
	endpoint_open(&ep, &attr, fd);
	exchange_datagrams(&ep, fd, own, peers);
	endpoint_close(&ep);
}

int main(int argc, char **argv)
{
	uint8_t gid_index;
	pid_t child;
	int fd;

	if (argc != 2)
		errx(1, "usage: fresh_memory GID_INDEX");
	gid_index = (uint8_t)atoi(argv[1]);
	child = exchange_fork(&fd);
	if (child) {
		converse(fd, gid_index, 2, 1);
		exchange_join(child);
		puts("all is as it was sent");
	} else {
		converse(fd, gid_index, 1, 2);
	}
	return 0;
}
