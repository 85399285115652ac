/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer.h"

#include <err.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"

/* The pattern repeats after 256 pages. */
#define CHUNK (256 * 4096u)

enum kind { KIND_WRITE, KIND_SEND, KIND_END };

struct order {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint8_t kind;
	uint8_t seed;
};

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = CHUNK,
};

static int connection;
static pid_t peer;

/* --- The peer */

static void fill_pattern(uint8_t *bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < CHUNK; i += 4096)
		memset(bytes + i, (uint8_t)(seed + i / 4096), 4096);
}

static void request(struct endpoint *ep, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
		    uint32_t size)
{
	struct ibv_sge sge = {(uintptr_t)ep->memory, size, ep->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {addr, rkey}};

	if (ibv_post_send(ep->qp, &wr, &bad))
		err(1, "the peer cannot post");
	endpoint_success(ep);
}

static uint32_t chunk_of(uint64_t size, uint64_t at)
{
	return size - at < CHUNK ? (uint32_t)(size - at) : CHUNK;
}

static void compare(const uint8_t *bytes, uint32_t size, uint8_t seed)
{
	for (uint32_t i = 0; i < size; i++)
		if (bytes[i] != (uint8_t)(seed + i / 4096))
			errx(1, "READ returns other bytes than WRITE stored, at %u", i);
}

static void write_and_read(struct endpoint *ep, const struct order *order)
{
	fill_pattern(ep->memory, order->seed);
	for (uint64_t at = 0; at < order->size; at += CHUNK)
		request(ep, IBV_WR_RDMA_WRITE, order->addr + at, order->rkey,
			chunk_of(order->size, at));
	for (uint64_t at = 0; at < order->size; at += CHUNK) {
		uint32_t size = chunk_of(order->size, at);

		memset(ep->memory, 0, size);
		request(ep, IBV_WR_RDMA_READ, order->addr + at, order->rkey, size);
		compare(ep->memory, size, order->seed);
	}
}

static void serve(int fd)
{
	struct endpoint ep = {0};
	struct order order;

	endpoint_open(&ep, &attr, fd);
	for (;;) {
		exchange_recv(fd, &order, sizeof(order));
		if (order.kind == KIND_END)
			break;
		if (order.kind == KIND_WRITE) {
			write_and_read(&ep, &order);
		} else {
			fill_pattern(ep.memory, order.seed);
			request(&ep, IBV_WR_SEND, 0, 0, (uint32_t)order.size);
		}
		exchange_send(fd, "", 1);
	}
	endpoint_close(&ep);
	_exit(0);
}

/* --- The program under test */

static void give(const struct order *order)
{
	char done;

	exchange_send(connection, order, sizeof(*order));
	if (order->kind != KIND_END)
		exchange_recv(connection, &done, 1);
}

void peer_start(struct endpoint *ep)
{
	peer = exchange_fork(&connection);
	if (!peer)
		serve(connection);
	if (fcntl(connection, F_SETFD, FD_CLOEXEC))
		err(1, "fcntl");
	endpoint_open(ep, &attr, connection);
}

void peer_write(uint64_t addr, uint32_t rkey, uint64_t size, uint8_t seed)
{
	give(&(struct order){
		.addr = addr, .rkey = rkey, .size = size, .seed = seed, .kind = KIND_WRITE});
}

void peer_send(uint32_t size, uint8_t seed)
{
	give(&(struct order){.size = size, .seed = seed, .kind = KIND_SEND});
}

void peer_stop(struct endpoint *ep)
{
	give(&(struct order){.kind = KIND_END});
	endpoint_close(ep);
	exchange_join(peer);
}
