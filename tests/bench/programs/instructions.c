/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * instructions OP SIZE COUNT transfers COUNT messages between two engines in one thread, in full
 * packets. valgrind counts the instructions, independent of the machine's load. OP is write, send
 * or read; or copy, the least work of both ends: a copy and a CRC-32 of each payload at the sender
 * and the receiver.
 */
#include <err.h>
#include <isa-l/crc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define PACKET         4096
#define MEMORY         (16u << 20) /* of each end */
#define BURST          32
#define ROOM           4300
#define STEP_NS        1000
#define SIZE_MAX_BYTES (MEMORY / 2)

static struct pair *pair;
static struct endpoint ends[2];
static struct urxe_frame frames[BURST];
static uint8_t room[BURST][ROOM];

/* Sets `data` and `room` of the frames once, because an engine does not change them. */
static void lay_out_frames(void)
{
	for (uint32_t i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = room[i], .room = ROOM};
}

static uint32_t pass(unsigned from)
{
	uint32_t n = urxe_output(pair->node[from]->dev, pair->now, frames, BURST);

	urxe_input(pair->node[!from]->dev, pair->now, frames, n);
	return n;
}

static void message(uint32_t opcode, uint32_t size)
{
	const struct urxe_seg seg = node_seg(pair->node[0], 0, size);
	const struct urxe_seg to = node_seg(pair->node[1], 0, size);
	const struct urxe_recv_wr recv = {.n_segs = 1, .segs = &to};
	const struct urxe_send_wr wr = {.opcode = opcode,
					.n_segs = 1,
					.segs = &seg,
					.remote_addr = pair->node[1]->iova,
					.rkey = pair->node[1]->key,
					.flags = URXE_SEND_SIGNALED};
	struct urxe_wc wc;

	if (opcode == URXE_WR_SEND && urxe_post_recv(ends[1].rq, &recv))
		errx(1, "urxe_post_recv");
	if (urxe_post_send(ends[0].qp, &wr))
		errx(1, "urxe_post_send");
	do {
		if (pass(0) + pass(1) == 0)
			errx(1, "the message has not arrived");
		pair->now += STEP_NS;
	} while (!node_poll(&pair->node[0]->send_cq, &wc));
	if (wc.status)
		errx(1, "the message has failed: status %u", wc.status);
	if (opcode == URXE_WR_SEND && !node_poll(&pair->node[1]->recv_cq, &wc))
		errx(1, "the message was not received");
}

static void by_engines(uint32_t opcode, uint32_t size, uint32_t count)
{
	const struct pair_attr attr = {.seed = 1, .mem_size = MEMORY};
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	lay_out_frames();
	pair = pair_create(&attr);
	conn_open(pair, &conn, ends);
	while (count--)
		message(opcode, size);
	pair_destroy(pair);
}

static void by_copies(uint32_t size, uint32_t count)
{
	uint8_t *memory = calloc(2, SIZE_MAX_BYTES), packet[PACKET];
	uint32_t crc = 0;

	if (!memory)
		err(1, "calloc");
	while (count--) {
		for (uint32_t at = 0; at < size; at += PACKET) {
			uint32_t n = size - at < PACKET ? size - at : PACKET;

			memcpy(packet, memory + at, n);
			crc ^= crc32_gzip_refl(0, packet, n) ^ crc32_gzip_refl(0, packet, n);
			memcpy(memory + SIZE_MAX_BYTES + at, packet, n);
		}
	}
	free(memory);
	if (crc)
		errx(1, "the CRC of the same bytes is another");
}

int main(int argc, char **argv)
{
	uint32_t size, count;

	if (argc != 4)
		errx(2, "usage: instructions write|send|read|copy SIZE COUNT");
	size = (uint32_t)strtoul(argv[2], NULL, 10);
	count = (uint32_t)strtoul(argv[3], NULL, 10);
	if (!size || size > SIZE_MAX_BYTES)
		errx(2, "SIZE is from 1 to %u", SIZE_MAX_BYTES);
	if (!strcmp(argv[1], "copy"))
		by_copies(size, count);
	else if (!strcmp(argv[1], "write"))
		by_engines(URXE_WR_RDMA_WRITE, size, count);
	else if (!strcmp(argv[1], "send"))
		by_engines(URXE_WR_SEND, size, count);
	else if (!strcmp(argv[1], "read"))
		by_engines(URXE_WR_RDMA_READ, size, count);
	else
		errx(2, "no operation '%s'", argv[1]);
	return 0;
}
