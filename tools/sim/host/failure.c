/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/failure.h"

#include "sim/alloc.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

/* --- Choice. */

static bool is_mistaken_request(uint8_t kind)
{
	return kind == FAILURE_SEGMENT || kind == FAILURE_MALFORMED || kind == FAILURE_KEY;
}

static uint8_t choose_kind(const struct simconn *conn, struct rand *r)
{
	return (uint8_t)(conn->attr.type == URXE_QPT_RC
				 ? rand_in(r, FAILURE_STATE, FAILURE_RECEIVES)
				 : rand_in(r, FAILURE_STATE, FAILURE_MALFORMED));
}

static bool can_stop_receives(const struct endpoint *end)
{
	return end->recv_queue->depth && !end->recv_queue->shared;
}

/* The stream that triggers the failure, by the number of its posted requests: the end's own or, if
 * the end posts none, the other end's. */
static const struct stream *get_trigger(const struct simconn *conn, unsigned side)
{
	return &conn->stream[conn->stream[side].n ? side : !side];
}

static void plan_conn(struct simconn *conn, struct rand *r)
{
	static const uint8_t statuses[] = {URXE_WC_LOC_LEN_ERR, URXE_WC_LOC_QP_OP_ERR,
					   URXE_WC_MW_BIND_ERR};
	struct failure *failure = &conn->failure;

	failure->kind = choose_kind(conn, r);
	failure->side = rand_below(r, 2);
	failure->end_status = statuses[rand_below(r, sizeof(statuses))];
	if (is_mistaken_request(failure->kind) && !conn->stream[failure->side].n)
		failure->side = !failure->side;
	if (failure->kind == FAILURE_RECEIVES && !can_stop_receives(&conn->end[failure->side]))
		failure->kind = FAILURE_STATE;
	if (failure->kind == FAILURE_RECEIVES)
		conn->attr.rnr_retry = (uint8_t)rand_below(r, 7);
	failure->after = rand_below(r, get_trigger(conn, failure->side)->n);
}

void failure_plan(struct world *world)
{
	world->failure_rand = (struct rand){world->scenario.seed ^ 0x6661696c757265};
	for (uint64_t i = 0; i < world->scenario.failures && world->n_conns; i++) {
		struct simconn *conn =
			&world->conn[rand_below(&world->failure_rand, world->n_conns)];

		if (!conn->failure.kind)
			plan_conn(conn, &world->failure_rand);
	}
}

/* --- Mistakes. */

static bool is_due(const struct simconn *conn)
{
	const struct failure *failure = &conn->failure;

	return !failure->begun && get_trigger(conn, failure->side)->posted >= failure->after;
}

/* Moves the QP to the error state. From now on the end executes no request of its own stream and,
 * as a responder of RC, none of the other stream. */
static void move_to_error(struct endpoint *end)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct stream *stream = &end->conn->stream[end->side], *back = stream_back(stream);

	end->in_error = true;
	stream->mistake = stream->posted;
	if (end->conn->attr.type == URXE_QPT_RC)
		back->mistake = back->posted;
	sim_require(urxe_qp_modify(end->qp, end->host->world->now, &attr, URXE_QP_STATE) == 0);
}

void failure_turn(struct endpoint *end)
{
	struct failure *failure = &end->conn->failure;
	struct world *world = end->host->world;

	if (!failure->kind || failure->side != end->side || is_mistaken_request(failure->kind) ||
	    !is_due(end->conn) || rand_chance(&world->failure_rand, 0.5))
		return;
	failure->begun = true;
	if (failure->kind == FAILURE_STATE)
		move_to_error(end);
	else
		end->recv_queue->stopped = true;
	world_note(world, "host %u qp %06x %s", end->host->id, end->qpn,
		   failure->kind == FAILURE_STATE ? "goes to the error state"
						  : "posts no more receives");
}

/* On UC and UD a local error of a send queue leaves the receive queue working (IBA 10.3.1.7). */
bool failure_may_stop(const struct endpoint *end)
{
	const struct failure *failure = &end->conn->failure;

	return end->in_error || (end->conn->attr.type == URXE_QPT_RC &&
				 (failure->begun || failure->kind == FAILURE_RECEIVES));
}

bool failure_is_next(const struct stream *stream)
{
	const struct failure *failure = &stream->conn->failure;

	return is_mistaken_request(failure->kind) && failure->side == stream->side &&
	       is_due(stream->conn);
}

static uint8_t choose_opcode(const struct stream *stream, struct rand *r)
{
	static const uint8_t remote[] = {URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ, URXE_WR_FETCH_ADD,
					 URXE_WR_FLUSH};
	static const uint8_t local[] = {URXE_WR_SEND, URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ};

	switch (stream->conn->failure.kind) {
	case FAILURE_KEY: return remote[rand_below(r, sizeof(remote))];
	case FAILURE_MALFORMED: return URXE_WR_SEND;
	default: break;
	}
	switch (stream->conn->attr.type) {
	case URXE_QPT_RC: return local[rand_below(r, 3)];
	case URXE_QPT_UC: return local[rand_below(r, 2)];
	default: return URXE_WR_SEND;
	}
}

/* Sets the remote address and key. For FAILURE_KEY one of them is wrong: the key of a window that
 * is not bound, an unknown key, or an address outside the memory. */
static void choose_remote(struct stream *stream, struct urxe_send_wr *wr, struct rand *r)
{
	const struct simhost *peer = stream_to(stream)->host;

	wr->remote_addr = peer->iova + stream->target;
	wr->rkey = peer->key;
	if (stream->conn->failure.kind != FAILURE_KEY)
		return;
	if (stream->mw.state == WINDOW_FREE) {
		wr->rkey = stream->mw.key;
		/* None is posted, but no request may bind the window any more. */
		stream->mw.state = WINDOW_INVALIDATING;
	} else if (rand_chance(r, 0.5)) {
		wr->rkey = ~peer->key;
	} else {
		wr->remote_addr = peer->iova + ((peer->mem_size + 7) & ~UINT64_C(7));
	}
}

static uint32_t choose_length(const struct stream *stream, uint8_t opcode, struct rand *r)
{
	const uint32_t mtu = 128u << stream->conn->attr.path_mtu;
	const uint32_t most = stream->conn->attr.type == URXE_QPT_UD && mtu < stream->world->size
				      ? mtu
				      : stream->world->size;

	if (stream->conn->failure.kind == FAILURE_MALFORMED)
		return 0;
	return is_atomic(opcode) ? 8 : rand_in(r, 1, most);
}

/* Fills in the request, which is signaled, and its segments. */
static void choose_request(struct stream *stream, struct request *request, struct rand *r)
{
	request->opcode = choose_opcode(stream, r);
	request->length = choose_length(stream, request->opcode, r);
	request->signaled = true;
	request->flags = URXE_SEND_SIGNALED;
	stream_make_layout(stream, stream->posted);
}

bool failure_is_mistake(const struct stream *stream, uint32_t index)
{
	return is_mistaken_request(stream->conn->failure.kind) && index == stream->mistake;
}

static int post_request(struct stream *stream, const struct request *request, struct rand *r)
{
	struct endpoint *end = stream_from(stream);
	const struct urxe_path path = simconn_path(stream->conn, stream->side);
	struct urxe_seg seg = simhost_seg(
		end->host, stream_out(stream, stream->posted)->layout.offset[0], request->length);
	struct urxe_send_wr wr = {
		.wr_id = stream->posted,
		.opcode = request->opcode,
		.flags = request->flags,
		.n_segs = request->opcode != URXE_WR_FLUSH,
		.segs = &seg,
		.flush = {.placement = URXE_FLUSH_GLOBAL,
			  .selectivity = URXE_FLUSH_RANGE,
			  .length = request->length},
		.path = &path,
		.remote_qpn = stream_to(stream)->qpn,
		.remote_qkey = SIMCONN_QKEY,
	};

	choose_remote(stream, &wr, r);
	if (stream->conn->failure.kind == FAILURE_SEGMENT)
		seg.lkey = ~end->host->key;
	return urxe_post_send(end->qp, &wr);
}

int failure_post(struct stream *stream)
{
	struct rand *r = &stream->world->failure_rand;
	struct request *request = &stream->request[stream->posted];
	struct failure *failure = &stream->conn->failure;

	failure->begun = true;
	stream->mistake = stream->posted;
	choose_request(stream, request, r);
	if (failure->kind == FAILURE_MALFORMED)
		return urxe_post_malformed(stream_from(stream)->qp, stream->posted,
					   failure->end_status);
	return post_request(stream, request, r);
}
