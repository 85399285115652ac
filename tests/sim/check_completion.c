/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

static uint32_t wc_opcode(uint8_t wr_opcode)
{
	switch (wr_opcode) {
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_WRITE_IMM: return URXE_WC_RDMA_WRITE;
	case URXE_WR_RDMA_READ: return URXE_WC_RDMA_READ;
	case URXE_WR_COMPARE_SWAP: return URXE_WC_COMPARE_SWAP;
	case URXE_WR_FETCH_ADD: return URXE_WC_FETCH_ADD;
	default: return URXE_WC_SEND;
	}
}

static void check_read(struct stream *stream, uint32_t index)
{
	struct request *request = &stream->request[index];
	static uint8_t data[CONTENT_MAX];

	layout_copy_out(&request->layout, stream->world->pair->node[stream->side]->mem, data,
			request->length);
	if (memcmp(data, request->expected, request->length))
		world_fail(stream->world, "READ %u of qp %06x brought wrong data", index,
			   stream->conn->end[stream->side].qpn);
	free(request->expected);
	request->expected = NULL;
}

/* Additions of all others come in between: the values can only grow. */
static void check_shared(struct stream *stream, uint32_t index, uint64_t original)
{
	if (original < stream->last_shared)
		world_fail(stream->world,
			   "addition %u of qp %06x found %" PRIu64 " after it had found %" PRIu64,
			   index, stream->conn->end[stream->side].qpn, original,
			   stream->last_shared - 1);
	stream->last_shared = original + 1;
}

static void check_atomic(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];
	uint64_t original;

	memcpy(&original, stream->world->pair->node[stream->side]->mem + request->layout.offset[0],
	       8);
	if (request->shared)
		check_shared(stream, index, original);
	else if (original != request->original)
		world_fail(stream->world, "atomic %u of qp %06x returned %" PRIx64 ", not %" PRIx64,
			   index, stream->conn->end[stream->side].qpn, original, request->original);
}

static void check_result(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];

	if (request->opcode == URXE_WR_RDMA_READ)
		check_read(stream, index);
	else if (request->opcode == URXE_WR_COMPARE_SWAP || request->opcode == URXE_WR_FETCH_ADD)
		check_atomic(stream, index);
	if (!layout_gaps_intact(&request->layout, stream->world->pair->node[stream->side]->mem))
		world_fail(stream->world, "request %u wrote outside its segments", index);
}

void check_completion(struct world *world, unsigned side, const struct urxe_wc *wc)
{
	struct conn *conn = world_conn(world, side, wc->qpn);
	struct stream *stream;
	uint32_t index = (uint32_t)wc->wr_id;

	if (!conn) {
		world_fail(world, "send completion of unknown qp %06x", wc->qpn);
		return;
	}
	stream = &conn->stream[side];
	if (wc->status != URXE_WC_SUCCESS) {
		world_fail(world, "request %u of qp %06x ended with status %u", index, wc->qpn,
			   wc->status);
		return;
	}
	/* The next one that asked for a completion: nothing twice, left out or early. */
	while (stream->completed < stream->posted && !stream->request[stream->completed].signaled)
		check_result(stream, stream->completed++);
	if (stream->completed == stream->posted || index != stream->completed) {
		world_fail(world, "completion %u of qp %06x where %u of %u is next", index, wc->qpn,
			   stream->completed, stream->posted);
		return;
	}
	if (wc->opcode != wc_opcode(stream->request[index].opcode))
		world_fail(world, "request %u of qp %06x completed as opcode %u", index, wc->qpn,
			   wc->opcode);
	if ((wc->opcode == URXE_WC_RDMA_READ || wc->opcode >= URXE_WC_COMPARE_SWAP) &&
	    wc->byte_len != stream->request[index].length)
		world_fail(world, "request %u of qp %06x brought %u bytes, not %u", index, wc->qpn,
			   wc->byte_len, stream->request[index].length);
	check_result(stream, index);
	stream->completed++;
}
