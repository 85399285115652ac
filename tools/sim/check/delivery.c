/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check/check.h"

#include <arpa/inet.h>

#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

struct arrival {
	struct stream *stream;
	const struct urxe_wc *wc;
	const struct layout *layout;
	uint8_t *data; /* without GRH */
	uint32_t length;
};

/* The next message in order that consumes a receive request. */
static uint32_t get_next_expected(const struct stream *stream)
{
	uint32_t index = stream->delivered;

	while (index < stream->posted && !stream->request[index].consumes)
		index++;
	return index;
}

/* The number of the message that arrived: UC and UD have it in the immediate data or the content;
 * on RC it is the next one in order. */
static uint32_t identify_message(const struct arrival *a)
{
	uint64_t index;

	if (a->stream->conn->attr.type == URXE_QPT_RC)
		return get_next_expected(a->stream);
	if (a->wc->flags & URXE_WC_WITH_IMM)
		return ntohl(a->wc->imm);
	if (a->length < CONTENT_ID_LEN)
		return UINT32_MAX;
	memcpy(&index, a->data, sizeof(index));
	return index < UINT32_MAX ? (uint32_t)index : UINT32_MAX;
}

static bool matches_request(const struct arrival *a, const struct request *request)
{
	bool is_write = request->opcode == URXE_WR_RDMA_WRITE_IMM;
	bool with_inv = request->opcode == URXE_WR_SEND_INV;
	bool with_imm = request->opcode != URXE_WR_SEND && !with_inv;

	return a->wc->opcode == (is_write ? URXE_WC_RECV_RDMA_WITH_IMM : URXE_WC_RECV) &&
	       !!(a->wc->flags & URXE_WC_WITH_INV) == with_inv &&
	       !!(a->wc->flags & URXE_WC_WITH_IMM) == with_imm && a->length == request->length;
}

/* Whether the content is right, in the receive's segments or, for a WRITE, at its target. */
static bool has_right_content(const struct arrival *a, uint32_t index)
{
	const struct stream *stream = a->stream;
	const struct request *request = &stream->request[index];
	uint8_t *expected = stream->world->scratch;
	const uint8_t *data = a->data;

	if (request->opcode == URXE_WR_RDMA_WRITE_IMM) {
		/* On RC, later WRITEs may have overwritten the content already, so only
		 * check_memory checks it. */
		if (stream->conn->attr.type == URXE_QPT_RC)
			return true;
		data = stream_to(stream)->host->mem + stream->target + request->target;
	}
	content_fill(stream->seed, index, expected, request->length);
	return memcmp(data, expected, request->length) == 0;
}

/*
 * May the message arrive now? RC keeps the order over any network. UC accepts a first packet with
 * any PSN (IBA 9.8.2.2), and UD checks no PSN. So messages that the network duplicates or reorders
 * arrive twice or late there.
 */
static bool is_in_order(struct stream *stream, uint32_t index)
{
	bool ordered = index >= stream->delivered;

	stream->delivered = index + 1;
	stream->arrivals++;
	return ordered ||
	       (stream->conn->attr.type != URXE_QPT_RC && stream->world->reorders_or_duplicates);
}

/* SEND with invalidate: checks the key, and lets the owner bind the window again. */
static void check_invalidated(struct stream *stream, uint32_t key)
{
	if (stream->mw.state != WINDOW_INVALIDATING || key != stream->mw.key)
		world_fail_stream(stream, "key %08x was invalidated, not %08x", key,
				  stream->mw.key);
	stream->mw.state = WINDOW_FREE;
}

static void check_arrival(const struct arrival *a)
{
	struct stream *stream = a->stream;
	const uint32_t index = identify_message(a), qpn = stream_from(stream)->qpn;

	if (index >= stream_executable(stream)) {
		world_fail_stream(stream, "qp %06x received a message that nobody sent",
				  a->wc->qpn);
		return;
	}
	world_note(stream->world, "host %u qp %06x received %u", stream_to(stream)->host->id,
		   a->wc->qpn, index);
	if (!is_in_order(stream, index))
		world_fail_stream(stream, "qp %06x received message %u twice or late", a->wc->qpn,
				  index);
	else if (!stream->request[index].consumes || !matches_request(a, &stream->request[index]))
		world_fail_stream(stream,
				  "qp %06x received message %u as opcode %u, %u bytes, flags %x",
				  a->wc->qpn, index, a->wc->opcode, a->length, a->wc->flags);
	else if (a->wc->flags & URXE_WC_WITH_IMM && a->wc->imm != htonl(index))
		world_fail_stream(stream, "immediate data of message %u is %x", index, a->wc->imm);
	else if (a->wc->solicited != !!(stream->request[index].flags & URXE_SEND_SOLICITED))
		world_fail_stream(stream, "message %u is%s solicited", index,
				  a->wc->solicited ? "" : " not");
	else if (!has_right_content(a, index))
		world_fail_stream(stream, "content of message %u of qp %06x is wrong", index, qpn);
	stream->request[index].delivered = true;
	stream->ended += stream_to(stream)->recv_queue->shared &&
			 a->length > 128u << stream->conn->attr.path_mtu &&
			 stream->request[index].opcode != URXE_WR_RDMA_WRITE_IMM;
	if (stream->request[index].opcode == URXE_WR_SEND_INV)
		check_invalidated(stream, a->wc->invalidated_key);
}

/* Removes the GRH from the message; false: the GRH is missing, and the world has failed. */
static bool strip_grh(struct arrival *a)
{
	const struct stream *stream = a->stream;

	if (!(a->wc->flags & URXE_WC_GRH) || a->length < URXE_GRH_LEN ||
	    a->wc->src_qpn != stream_from(stream)->qpn) {
		world_fail_stream(stream, "datagram without GRH, or from qp %06x", a->wc->src_qpn);
		return false;
	}
	a->data += URXE_GRH_LEN;
	a->length -= URXE_GRH_LEN;
	return true;
}

void check_delivery(struct simhost *host, const struct urxe_wc *wc)
{
	struct world *world = host->world;
	struct endpoint *end = simhost_end(host, wc->qpn);
	struct member *member = member_find(host, wc->qpn);
	struct arrival a = {.wc = wc, .data = world->arrived, .length = wc->byte_len};

	if (member) {
		check_multicast_delivery(member, wc);
		return;
	}
	if (end && wc->status != URXE_WC_SUCCESS) {
		if (!check_given_up(end, wc))
			check_flushed_recv(end, wc);
		return;
	}
	if (!end || end->flushed || wc->byte_len > world->size + URXE_GRH_LEN) {
		world_fail(world, "host %u: receive completion: qp %06x, status %u, %u bytes",
			   host->id, wc->qpn, wc->status, wc->byte_len);
		return;
	}
	a.stream = &end->conn->stream[!end->side];
	a.layout = recv_queue_take(end->recv_queue, wc->wr_id);
	if (!a.layout)
		return;
	layout_copy_out(a.layout, host->mem, a.data, wc->byte_len);
	if (end->conn->attr.type != URXE_QPT_UD || strip_grh(&a))
		check_arrival(&a);
}
