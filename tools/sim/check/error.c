/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that end in an error, which only connections with a failure (host/failure.h) may have.
 * The first error of a stream has the status that follows from the failure. All later requests are
 * flushed, signaled or not (IBA 10.3.1.6).
 */
#include "sim/check/check.h"

#include <stdlib.h>

#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

static bool has_used_up_retries(const struct stream *stream)
{
	const uint64_t *events = urxe_qp_counters(stream_from(stream)->qp)->event;

	return events[URXE_EVENT_TIMEOUT] + events[URXE_EVENT_NAK_SEQ_RCVD] +
		       events[URXE_EVENT_IMPLIED_NAK] >
	       stream->conn->attr.retry_cnt;
}

static bool has_used_up_rnr_retries(const struct stream *stream)
{
	return urxe_qp_counters(stream_from(stream)->qp)->event[URXE_EVENT_NAK_RNR_RCVD] >
	       stream->conn->attr.rnr_retry;
}

/* Whether the status may come from a peer that does not answer, as a QP in the error state: on RC
 * the requester's retries are used up. */
static bool may_find_peer_silent(const struct stream *stream, uint32_t status)
{
	return status == URXE_WC_RETRY_EXC_ERR && stream->conn->attr.type == URXE_QPT_RC &&
	       has_used_up_retries(stream);
}

/*
 * Whether the status may come from the responder's refusal of the mistaken key. The responder
 * refuses the request by one NAK, and then answers nothing. So if the network loses or reorders
 * frames, the retries of this request or of an earlier one may be used up instead.
 */
static bool may_be_refused(const struct stream *stream, uint32_t index, uint32_t status)
{
	const struct world *world = stream->world;

	if (index == stream->mistake && status == URXE_WC_REM_ACCESS_ERR)
		return true;
	return (world->reorders_or_duplicates || world_lost_frames(world)) &&
	       index <= stream->mistake && may_find_peer_silent(stream, status);
}

/* Whether this may be the first error in the stream of the end that makes the mistake. */
static bool may_fail_by_mistake(const struct stream *stream, uint32_t index, uint32_t status)
{
	const struct failure *failure = &stream->conn->failure;

	switch (failure->kind) {
	case FAILURE_STATE: return status == URXE_WC_WR_FLUSH_ERR;
	case FAILURE_SEGMENT: return index == stream->mistake && status == URXE_WC_LOC_PROT_ERR;
	case FAILURE_MALFORMED: return index == stream->mistake && status == failure->end_status;
	case FAILURE_KEY: return may_be_refused(stream, index, status);
	default: return false;
	}
}

static bool may_fail(const struct stream *stream, uint32_t index, uint32_t status)
{
	const struct failure *failure = &stream->conn->failure;

	/* The requester may use up its RNR retries earlier than the peer stops posting receives. */
	if (failure->kind == FAILURE_RECEIVES)
		return may_find_peer_silent(stream, status) ||
		       (status == URXE_WC_RNR_RETRY_EXC_ERR && has_used_up_rnr_retries(stream));
	if (!failure->begun)
		return false;
	if (stream->side == failure->side)
		return may_fail_by_mistake(stream, index, status);
	/* A responder that refuses a request goes to the error state. */
	if (failure->kind == FAILURE_KEY)
		return status == URXE_WC_WR_FLUSH_ERR;
	return may_find_peer_silent(stream, status);
}

void check_error(struct stream *stream, uint32_t index, uint32_t status)
{
	struct world *world = stream->world;

	if (stream->failed ? status != URXE_WC_WR_FLUSH_ERR : !may_fail(stream, index, status)) {
		if (!world->failure[0])
			world->failed_status = status;
		world_fail_stream(stream, "request %u of qp %06x ended with status %u", index,
				  stream_from(stream)->qpn, status);
		return;
	}
	if (!stream->failed)
		stream_fail(stream);
	stream->mw.users -= stream_out(stream, index)->window;
	free(stream_out(stream, index)->expected);
	stream_out(stream, index)->expected = NULL;
	world_note(world, "host %u qp %06x: request %u ends with status %u",
		   stream_from(stream)->host->id, stream_from(stream)->qpn, index, status);
}

/* Whether a message may be in progress in a receive that the end has taken from an SRQ, because a
 * failure has cut off the message or, on UC, the network has. */
static bool may_have_taken(const struct endpoint *end)
{
	const struct stream *stream = &end->conn->stream[!end->side];

	return end->conn->failure.kind || (end->conn->attr.type == URXE_QPT_UC &&
					   (stream->lost || stream->world->reorders_or_duplicates));
}

void check_flushed_recv(struct endpoint *end, const struct urxe_wc *wc)
{
	struct world *world = end->host->world;

	if (wc->status != URXE_WC_WR_FLUSH_ERR || !failure_may_stop(end)) {
		world_fail(world, "host %u: receive completion: qp %06x, status %u", end->host->id,
			   wc->qpn, wc->status);
		return;
	}
	/* A QP flushes one request of its SRQ at most: that of a message in progress. */
	if (end->recv_queue->shared && (end->flushed || !may_have_taken(end))) {
		world_fail(world, "host %u: qp %06x flushed the requests of its SRQ", end->host->id,
			   wc->qpn);
		return;
	}
	end->flushed++;
	end->recv_queue->stopped |= !end->recv_queue->shared;
	recv_queue_take(end->recv_queue, wc->wr_id);
}
