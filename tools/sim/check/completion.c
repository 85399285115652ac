/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/host/simconn.h"
#include "sim/world.h"

static uint32_t wc_opcode(uint8_t wr_opcode)
{
	switch (wr_opcode) {
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_WRITE_IMM: return URXE_WC_RDMA_WRITE;
	case URXE_WR_RDMA_READ: return URXE_WC_RDMA_READ;
	case URXE_WR_COMPARE_SWAP: return URXE_WC_COMPARE_SWAP;
	case URXE_WR_FETCH_ADD: return URXE_WC_FETCH_ADD;
	case URXE_WR_ATOMIC_WRITE: return URXE_WC_ATOMIC_WRITE;
	case URXE_WR_FLUSH: return URXE_WC_FLUSH;
	case URXE_WR_BIND_MW: return URXE_WC_BIND_MW;
	case URXE_WR_REG_MR: return URXE_WC_REG_MR;
	case URXE_WR_LOCAL_INV: return URXE_WC_LOCAL_INV;
	default: return URXE_WC_SEND;
	}
}

static void check_read(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];
	struct outstanding *out = stream_out(stream, index);
	uint8_t *data = stream->world->scratch;

	layout_copy_out(&out->layout, stream_from(stream)->host->mem, data, request->length);
	if (memcmp(data, out->expected, request->length))
		world_fail_stream(stream, "READ %u of qp %06x brought wrong data", index,
				  stream_from(stream)->qpn);
	free(out->expected);
	out->expected = NULL;
}

static void check_atomic(struct stream *stream, uint32_t index)
{
	const struct outstanding *out = stream_out(stream, index);
	uint64_t original;

	memcpy(&original, stream_from(stream)->host->mem + out->layout.offset[0], 8);
	if (out->shared)
		check_atomics_note(stream, index, original);
	else if (original != out->original)
		world_fail_stream(stream, "atomic %u of qp %06x returned %" PRIx64 ", not %" PRIx64,
				  index, stream_from(stream)->qpn, original, out->original);
}

/* Checks that memory has the content of the flushed range, unless a request after the FLUSH may
 * have changed it. */
static void check_flush_result(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];

	if (stream->posted == index + 1 &&
	    memcmp(stream_to(stream)->host->mem + stream->target + request->target,
		   stream->model + request->target, request->length))
		world_fail_stream(stream, "FLUSH %u of qp %06x was complete too early", index,
				  stream_from(stream)->qpn);
}

static void check_window(struct stream *stream, uint8_t opcode)
{
	struct window *own = &stream_back(stream)->mw;

	own->state = opcode == URXE_WR_LOCAL_INV ? WINDOW_FREE : WINDOW_BOUND;
	own->key = window_key(own);
}

static void check_opcode_result(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];

	switch (request->opcode) {
	case URXE_WR_RDMA_READ: check_read(stream, index); break;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD: check_atomic(stream, index); break;
	case URXE_WR_FLUSH: check_flush_result(stream, index); return;
	case URXE_WR_BIND_MW:
	case URXE_WR_REG_MR:
	case URXE_WR_LOCAL_INV: check_window(stream, request->opcode); break;
	default: break;
	}
	stream->bytes += request->length;
}

static void check_result(struct stream *stream, uint32_t index)
{
	check_opcode_result(stream, index);
	stream->mw.users -= stream_out(stream, index)->window;
	if (!layout_gaps_intact(&stream_out(stream, index)->layout, stream_from(stream)->host->mem))
		world_fail_stream(stream, "request %u of qp %06x wrote outside its segments", index,
				  stream_from(stream)->qpn);
}

static void check_fields(const struct stream *stream, const struct urxe_wc *wc)
{
	const uint32_t index = (uint32_t)wc->wr_id;
	const struct request *request = &stream->request[index];

	if (wc->opcode != wc_opcode(request->opcode))
		world_fail_stream(stream, "request %u of qp %06x completed as opcode %u", index,
				  wc->qpn, wc->opcode);
	if ((wc->opcode == URXE_WC_RDMA_READ || wc->opcode == URXE_WC_COMPARE_SWAP ||
	     wc->opcode == URXE_WC_FETCH_ADD) &&
	    wc->byte_len != request->length)
		world_fail_stream(stream, "request %u of qp %06x brought %u bytes, not %u", index,
				  wc->qpn, wc->byte_len, request->length);
}

/* Whether the request ends without a completion, as an unsignaled request does unless it fails. */
static bool is_silent(const struct stream *stream, uint32_t index, const struct urxe_wc *wc)
{
	return !stream->failed && !stream->request[index].signaled &&
	       (wc->status == URXE_WC_SUCCESS || index != wc->wr_id);
}

/* Checks that the request may succeed: it comes before the mistake, or the peer makes the mistake
 * and the request needs no peer. */
static void check_success(const struct stream *stream, uint32_t index)
{
	const uint8_t opcode = stream->request[index].opcode;
	const bool is_local = opcode == URXE_WR_BIND_MW || opcode == URXE_WR_REG_MR ||
			      opcode == URXE_WR_LOCAL_INV;

	if (stream->failed ||
	    (index >= stream->mistake && !(is_local && stream->side != stream->conn->failure.side)))
		world_fail_stream(stream, "request %u of qp %06x succeeded after a mistake", index,
				  stream_from(stream)->qpn);
}

/* Checks that the completion is of the next request in order, and that no request succeeds from a
 * mistake on. False: the simulation has failed. */
static bool check_order(struct stream *stream, const struct urxe_wc *wc)
{
	const bool good = wc->status == URXE_WC_SUCCESS;

	while (stream->completed < stream->posted && is_silent(stream, stream->completed, wc)) {
		check_success(stream, stream->completed);
		check_result(stream, stream->completed++);
	}
	if (stream->completed == stream->posted || wc->wr_id != stream->completed)
		world_fail_stream(stream, "completion %u of qp %06x where %u of %u is next",
				  (uint32_t)wc->wr_id, wc->qpn, stream->completed, stream->posted);
	else if (good)
		check_success(stream, stream->completed);
	return !stream->world->failure[0];
}

void check_completion(struct simhost *host, const struct urxe_wc *wc)
{
	const struct endpoint *end = simhost_end(host, wc->qpn);
	const uint32_t index = (uint32_t)wc->wr_id;
	struct member *member = member_find(host, wc->qpn);
	struct stream *stream;

	if (member) {
		check_multicast_completion(member, wc);
		return;
	}
	if (!end) {
		world_fail(host->world, "host %u: send completion of unknown qp %06x", host->id,
			   wc->qpn);
		return;
	}
	stream = &end->conn->stream[end->side];
	if (wc->status != URXE_WC_SUCCESS && !stream->conn->failure.kind) {
		check_error(stream, index, wc->status);
		return;
	}
	if (!check_order(stream, wc))
		return;
	if (wc->status == URXE_WC_SUCCESS) {
		check_fields(stream, wc);
		check_result(stream, index);
	} else {
		check_error(stream, index, wc->status);
	}
	stream->completed++;
	if (stream_done(stream))
		world_stream_done(stream);
}
