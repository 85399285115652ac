/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/stream.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/host/recv_queue.h"
#include "sim/world.h"

/* Maximum number of requests that the application posts in one turn. */
#define TURN_POSTS 5

struct endpoint *stream_from(const struct stream *stream)
{
	return &stream->conn->end[stream->side];
}

struct endpoint *stream_to(const struct stream *stream)
{
	return &stream->conn->end[!stream->side];
}

struct stream *stream_back(const struct stream *stream)
{
	return &stream->conn->stream[!stream->side];
}

/* --- Creation and destruction. */

static uint32_t choose_request_count(struct world *world, unsigned side)
{
	/* Bulk traffic has one direction. */
	if (scenario_is_bulk(&world->scenario))
		return side ? 0 : (uint32_t)scenario_or(world->scenario.messages, 1000);
	return (uint32_t)scenario_or(world->scenario.messages, rand_in(&world->rand, 1, 32));
}

/* In bytes: atomics and ATOMIC WRITEs have 8, whatever the maximum message length is. */
static uint32_t longest_request(const struct world *world)
{
	return world->size < 8 ? 8 : world->size;
}

void stream_plan(struct stream *stream, struct world *world, struct simconn *conn, unsigned side)
{
	struct simhost *from = conn->end[side].host, *to = conn->end[!side].host;

	*stream = (struct stream){
		.world = world,
		.conn = conn,
		.side = side,
		.mistake = UINT32_MAX,
		.target_size = 2 * longest_request(world),
	};
	stream->seed = rand_next(&world->rand);
	stream->n = choose_request_count(world, side);
	if (!stream->n)
		return;
	stream->window = scenario_is_bulk(&world->scenario)
				 ? conn->attr.cap.max_send_wr
				 : rand_in(&world->rand, 1, conn->attr.cap.max_send_wr);
	stream->slots =
		simhost_alloc(from, (uint64_t)stream->window * LAYOUT_ROOM(longest_request(world)));
	stream->target = simhost_alloc(to, stream->target_size);
	stream->words = simhost_alloc(to, STREAM_WORDS * 8);
	stream->request = sim_calloc(stream->n, sizeof(*stream->request));
	stream->out = sim_calloc(stream->window, sizeof(*stream->out));
	from->open++;
	to->open++;
	world->open++;
}

void stream_initial(const struct stream *stream, uint8_t *data)
{
	content_fill(stream->seed, UINT32_MAX, data, stream->target_size);
}

static void create_window(struct stream *stream)
{
	const struct urxe_mw_attr attr = {.pd = SIMHOST_PD, .type = URXE_MW_TYPE_2};
	struct urxe_dev *dev = stream_to(stream)->host->dev;
	struct rand r = {stream->seed ^ 0x66617374};

	if (rand_chance(&r, stream->world->scenario.fast_regions))
		sim_require(urxe_fast_mr_alloc(dev, SIMHOST_PD, 2, &stream->mw.fast) == 0);
	else
		sim_require(urxe_mw_alloc(dev, &attr, &stream->mw.handle) == 0);
}

uint32_t window_key(const struct window *window)
{
	return window->fast ? urxe_fast_mr_key(window->fast) : urxe_mw_key(window->handle);
}

void stream_open(struct stream *stream)
{
	uint8_t *mem = stream_to(stream)->host->mem;
	struct rand r = {stream->seed};

	if (!stream->n)
		return;
	stream->model = sim_alloc(stream->target_size);
	stream_initial(stream, stream->model);
	memcpy(mem + stream->target, stream->model, stream->target_size);
	for (unsigned i = 0; i < STREAM_WORDS; i++)
		stream->word_model[i] = rand_next(&r);
	memcpy(mem + stream->words, stream->word_model, sizeof(stream->word_model));
	/* Without requests in the opposite stream, none would bind the window. */
	if (stream->conn->attr.type == URXE_QPT_RC && stream_back(stream)->n)
		create_window(stream);
}

void stream_free(struct stream *stream)
{
	for (uint32_t i = 0; i < stream->window; i++)
		free(stream->out[i].expected);
	free(stream->out);
	free(stream->request);
	free(stream->model);
}

/* --- Choice of a request. */

/* The length of a message: 0 to the maximum, often near a multiple of the path MTU. Of a bulk
 * stream always the maximum, of UD at most the path MTU. */
static uint32_t random_length(struct stream *stream)
{
	struct rand *r = &stream->world->rand;
	const uint32_t max = stream->world->size;
	uint32_t mtu = 128u << stream->conn->attr.path_mtu;
	uint32_t length;

	if (scenario_is_bulk(&stream->world->scenario))
		return max;
	if (stream->conn->attr.type == URXE_QPT_UD && mtu > max)
		mtu = max;
	if (stream->conn->attr.type == URXE_QPT_UD)
		return rand_chance(r, 0.3) ? mtu : rand_below(r, mtu + 1);
	if (rand_chance(r, 0.1))
		return 0;
	if (rand_chance(r, 0.3)) {
		length = mtu * rand_in(r, 1, 6) - 1;
		length += rand_below(r, 3);
	} else {
		length = rand_below(r, 1u << rand_in(r, 1, stream->world->size_bits));
	}
	return length <= max ? length : max;
}

/* Returns another operation in place of one on a window whose state does not permit it. */
static uint8_t replace_impossible_opcode(const struct stream *stream, uint8_t opcode)
{
	const struct window *own = &stream_back(stream)->mw;

	switch (opcode) {
	case URXE_WR_SEND_INV: return stream->mw.state == WINDOW_BOUND ? opcode : URXE_WR_SEND;
	case URXE_WR_BIND_MW:
		if (own->fast && own->state == WINDOW_FREE)
			return URXE_WR_REG_MR;
		return own->handle && own->state == WINDOW_FREE ? opcode : URXE_WR_RDMA_WRITE;
	case URXE_WR_LOCAL_INV:
		return own->state == WINDOW_BOUND && !own->users ? opcode : URXE_WR_RDMA_READ;
	default: return opcode;
	}
}

static uint8_t random_opcode(struct stream *stream)
{
	static const uint8_t rc[] = {
		URXE_WR_SEND,           URXE_WR_SEND_IMM,     URXE_WR_RDMA_WRITE,
		URXE_WR_RDMA_WRITE,     URXE_WR_RDMA_READ,    URXE_WR_RDMA_READ,
		URXE_WR_RDMA_WRITE_IMM, URXE_WR_COMPARE_SWAP, URXE_WR_FETCH_ADD,
		URXE_WR_ATOMIC_WRITE,   URXE_WR_FLUSH,        URXE_WR_SEND_INV,
		URXE_WR_BIND_MW,        URXE_WR_BIND_MW,      URXE_WR_LOCAL_INV};
	static const uint8_t uc[] = {URXE_WR_SEND, URXE_WR_SEND_IMM, URXE_WR_RDMA_WRITE,
				     URXE_WR_RDMA_WRITE_IMM};
	struct rand *r = &stream->world->rand;

	switch (stream->world->scenario.traffic) {
	case TRAFFIC_WRITE: return URXE_WR_RDMA_WRITE;
	case TRAFFIC_READ: return URXE_WR_RDMA_READ;
	case TRAFFIC_SEND: return URXE_WR_SEND;
	default: break;
	}
	switch (stream->conn->attr.type) {
	case URXE_QPT_RC: return replace_impossible_opcode(stream, rc[rand_below(r, sizeof(rc))]);
	case URXE_QPT_UC: return uc[rand_below(r, sizeof(uc))];
	default: return uc[rand_below(r, 2)];
	}
}

/* Whether the operation is on the target area. */
static bool is_rdma(uint8_t opcode)
{
	return is_write(opcode) || opcode == URXE_WR_RDMA_READ || opcode == URXE_WR_FLUSH;
}

static bool is_local(uint8_t opcode)
{
	return opcode == URXE_WR_BIND_MW || opcode == URXE_WR_REG_MR || opcode == URXE_WR_LOCAL_INV;
}

/* Whether the operation has a payload. */
static bool reads_memory(uint8_t opcode)
{
	return opcode != URXE_WR_RDMA_READ && opcode != URXE_WR_FLUSH && !is_atomic(opcode) &&
	       !is_local(opcode);
}

/* Whether the WRITE needs a fence. A WRITE may overtake the responses to an earlier READ (IBA table
 * 76), which would spoil the READ's expected result if their ranges overlap. */
static bool needs_fence(const struct stream *stream, const struct request *write)
{
	for (uint32_t i = stream->completed; i < stream->posted; i++) {
		const struct request *read = &stream->request[i];

		if (read->opcode == URXE_WR_RDMA_READ &&
		    read->target < write->target + write->length &&
		    write->target < read->target + read->length)
			return true;
	}
	return false;
}

static void choose_target(struct stream *stream, struct request *request)
{
	struct rand *r = &stream->world->rand;

	if (stream->conn->attr.type == URXE_QPT_UC) {
		if (request->length > stream->target_size - stream->target_used)
			request->length = stream->target_size - stream->target_used;
		request->target = stream->target_used;
		stream->target_used += request->length;
	} else {
		request->target = rand_below(r, stream->target_size - request->length);
		if (request->opcode == URXE_WR_ATOMIC_WRITE)
			request->target &= ~7u;
	}
}

static uint32_t choose_length(struct stream *stream, uint8_t opcode)
{
	if (is_atomic(opcode) || opcode == URXE_WR_ATOMIC_WRITE)
		return 8;
	return is_local(opcode) ? 0 : random_length(stream);
}

static void choose_request(struct stream *stream, uint32_t index)
{
	struct request *request = &stream->request[index];
	struct rand *r = &stream->world->rand;

	request->opcode = random_opcode(stream);
	request->length = choose_length(stream, request->opcode);
	if (is_rdma(request->opcode))
		choose_target(stream, request);
	if (request->opcode == URXE_WR_SEND && stream->conn->attr.type != URXE_QPT_RC &&
	    request->length < CONTENT_ID_LEN)
		request->opcode = URXE_WR_SEND_IMM;
	request->consumes =
		request->opcode == URXE_WR_SEND || request->opcode == URXE_WR_SEND_IMM ||
		request->opcode == URXE_WR_SEND_INV || request->opcode == URXE_WR_RDMA_WRITE_IMM;
	/* The last request of each window is signaled: without its completion the application could
	 * post no further request. */
	request->signaled = stream->conn->attr.sq_sig_all || index + 1 == stream->n ||
			    (index + 1) % stream->window == 0 || rand_chance(r, 0.5);
}

/* --- Work requests. */

/*
 * Makes an atomic on the peer's shared word. All streams to a host add to the word, by
 * fetch-and-add, or by compare-and-swap with the last known value, which fails if another stream
 * has added meanwhile.
 */
static void prepare_shared(struct stream *stream, struct outstanding *out, struct urxe_send_wr *wr)
{
	struct simhost *peer = stream_to(stream)->host;

	out->shared = true;
	out->add = rand_in(&stream->world->rand, 1, 1000);
	out->compare = stream->last_shared;
	out->posted = stream->world->now;
	wr->remote_addr = peer->iova + peer->shared_word;
	wr->compare_add = wr->opcode == URXE_WR_FETCH_ADD ? out->add : out->compare;
	wr->swap = out->compare + out->add;
}

static void prepare_atomic(struct stream *stream, struct outstanding *out, struct urxe_send_wr *wr)
{
	struct rand *r = &stream->world->rand;
	uint32_t word = rand_below(r, STREAM_WORDS);
	uint64_t *model = &stream->word_model[word];

	out->shared = false;
	if (rand_chance(r, 0.5) && !stream->conn->failure.kind) {
		prepare_shared(stream, out, wr);
		return;
	}
	wr->remote_addr = stream_to(stream)->host->iova + stream->words + 8 * word;
	out->word = word;
	out->original = *model;
	wr->compare_add = rand_in(r, 1, 1000);
	if (wr->opcode == URXE_WR_FETCH_ADD) {
		*model += wr->compare_add;
		return;
	}
	wr->swap = rand_next(r);
	if (rand_chance(r, 0.7)) {
		wr->compare_add = *model;
		*model = wr->swap;
	}
}

/* Fills in a request that changes a window: binding, registration and invalidation by the owner, or
 * SEND with invalidate by the peer. */
static void prepare_window(struct stream *stream, struct urxe_send_wr *wr)
{
	struct window *own = &stream_back(stream)->mw;
	struct simhost *host = stream_from(stream)->host;

	switch (wr->opcode) {
	case URXE_WR_BIND_MW:
		own->state = WINDOW_BINDING;
		wr->bind = (struct urxe_mw_bind){
			.mw_key = urxe_mw_key(own->handle),
			.tag = (uint8_t)rand_below(&stream->world->rand, 256),
			.mr_key = host->key,
			.access = SIMHOST_ACCESS & ~(uint32_t)URXE_ACCESS_REMOTE_ATOMIC,
			.addr = host->iova + stream_back(stream)->target,
			.length = stream->target_size,
		};
		break;
	case URXE_WR_REG_MR:
		own->state = WINDOW_BINDING;
		wr->fast_reg = (struct urxe_fast_reg){
			.key = (window_key(own) & ~0xffu) | rand_below(&stream->world->rand, 256),
			.access = SIMHOST_ACCESS | URXE_ACCESS_LOCAL_WRITE,
			.iova = host->iova + stream_back(stream)->target,
			.length = stream_back(stream)->target_size,
			.page_list = stream_back(stream)->target,
		};
		break;
	case URXE_WR_LOCAL_INV:
		own->state = WINDOW_INVALIDATING;
		wr->invalidate_key = own->key;
		break;
	case URXE_WR_SEND_INV:
		/* Fenced: responses to earlier READs with this key must come before. */
		stream->mw.state = WINDOW_INVALIDATING;
		wr->invalidate_key = stream->mw.key;
		wr->flags |= URXE_SEND_FENCE;
		break;
	default: break;
	}
}

static void prepare_rdma(struct stream *stream, uint32_t index, struct urxe_send_wr *wr,
			 const uint8_t *content)
{
	struct request *request = &stream->request[index];
	struct outstanding *out = stream_out(stream, index);

	wr->remote_addr = stream_to(stream)->host->iova + stream->target + request->target;
	out->window = stream->mw.state == WINDOW_BOUND && rand_chance(&stream->world->rand, 0.5);
	if (out->window) {
		wr->rkey = stream->mw.key;
		stream->mw.users++;
	}
	if (request->opcode == URXE_WR_FLUSH) {
		wr->flush = (struct urxe_flush){
			.placement = (uint8_t)rand_in(&stream->world->rand, 1, 3),
			.selectivity = URXE_FLUSH_RANGE,
			.length = request->length,
		};
		return;
	}
	if (request->opcode == URXE_WR_RDMA_READ) {
		out->expected = sim_alloc(request->length + 1);
		memcpy(out->expected, stream->model + request->target, request->length);
		return;
	}
	memcpy(stream->model + request->target, content, request->length);
	if (needs_fence(stream, request))
		wr->flags |= URXE_SEND_FENCE;
}

void stream_make_layout(struct stream *stream, uint32_t index)
{
	const struct request *request = &stream->request[index];
	const bool one_piece =
		is_atomic(request->opcode) || scenario_is_bulk(&stream->world->scenario);
	struct layout *layout = &stream_out(stream, index)->layout;

	stream_out(stream, index)->window = false;
	layout_make(layout, &stream->world->rand,
		    stream->slots + (uint64_t)(index % stream->window) *
					    LAYOUT_ROOM(longest_request(stream->world)),
		    request->opcode == URXE_WR_FLUSH ? 0 : request->length,
		    one_piece ? 1 : LAYOUT_MAX_SEGS);
	layout_paint_gaps(layout, stream_from(stream)->host->mem);
}

/* Posts the request, then overwrites its arguments, which the engine must not use after the call.
 * Returns the engine's result. */
static int post_request(struct stream *stream, uint32_t index, struct urxe_send_wr *wr,
			uint8_t *content)
{
	const struct request *request = &stream->request[index];
	const struct layout *layout = &stream_out(stream, index)->layout;
	struct endpoint *end = stream_from(stream);
	struct urxe_path path = simconn_path(stream->conn, stream->side);
	struct urxe_seg segs[LAYOUT_MAX_SEGS];
	int error;

	if (reads_memory(request->opcode) && request->length <= stream->conn->attr.cap.max_inline &&
	    rand_chance(&stream->world->rand, 0.5)) {
		wr->flags |= URXE_SEND_INLINE;
		wr->inline_data = content;
		wr->inline_len = request->length;
	} else if (request->opcode != URXE_WR_FLUSH && !is_local(request->opcode)) {
		if (reads_memory(request->opcode))
			layout_copy_in(layout, end->host->mem, content, request->length);
		for (uint32_t i = 0; i < layout->n; i++)
			segs[i] = simhost_seg(end->host, layout->offset[i], layout->length[i]);
		wr->segs = segs;
		wr->n_segs = layout->n;
	}
	if (stream->conn->attr.type == URXE_QPT_UD) {
		wr->path = &path;
		wr->remote_qpn = stream_to(stream)->qpn;
		wr->remote_qkey = SIMCONN_QKEY;
	}
	error = urxe_post_send(end->qp, wr);
	if (wr->flags & URXE_SEND_INLINE)
		memset(content, 0xdd, request->length);
	memset(segs, 0xdd, sizeof(segs));
	memset(&path, 0xdd, sizeof(path));
	return error;
}

static uint32_t random_flags(struct stream *stream, const struct request *request)
{
	struct rand *r = &stream->world->rand;
	uint32_t flags = request->signaled ? URXE_SEND_SIGNALED : 0;

	if (scenario_is_bulk(&stream->world->scenario))
		return flags;
	if (rand_chance(r, 0.2))
		flags |= URXE_SEND_SOLICITED;
	if (rand_chance(r, 0.1))
		flags |= URXE_SEND_FENCE;
	return flags;
}

/* Chooses and posts the request; returns the engine's result. */
static int post_correct(struct stream *stream, uint32_t index)
{
	struct request *request = &stream->request[index];
	uint8_t *content = stream->world->scratch;
	struct urxe_send_wr wr;
	int error;

	choose_request(stream, index);
	wr = (struct urxe_send_wr){
		.wr_id = index,
		.opcode = request->opcode,
		.imm = htonl(index),
		.rkey = stream_to(stream)->host->key,
		.flags = random_flags(stream, request),
	};
	stream_make_layout(stream, index);
	if (reads_memory(request->opcode))
		content_fill(stream->seed, index, content, request->length);
	if (is_atomic(request->opcode))
		prepare_atomic(stream, stream_out(stream, index), &wr);
	else if (is_rdma(request->opcode))
		prepare_rdma(stream, index, &wr, content);
	else
		prepare_window(stream, &wr);
	error = post_request(stream, index, &wr, content);
	request->flags = (uint8_t)wr.flags;
	return error;
}

static bool post_next(struct stream *stream)
{
	const uint32_t index = stream->posted;
	const struct request *request = &stream->request[index];
	const bool mistake = failure_is_next(stream);
	int error = mistake ? failure_post(stream) : post_correct(stream, index);

	if (error) {
		world_fail_stream(stream, "post_send of request %u refused: %d", index, error);
		return false;
	}
	stream->posted++;
	stream->world->requests++;
	stream->world->activity++;
	world_note(stream->world, "host %u qp %06x posts %u: opcode %u, %u bytes, flags %x%s",
		   stream_from(stream)->host->id, stream_from(stream)->qpn, index, request->opcode,
		   request->length, request->flags, mistake ? ", mistaken" : "");
	return true;
}

void stream_post(struct stream *stream)
{
	uint32_t n = stream->window;

	if (stream_to(stream)->change.withdrawn)
		return;
	if (!scenario_is_bulk(&stream->world->scenario))
		n = rand_below(&stream->world->rand, TURN_POSTS + 1);
	while (n-- && stream->posted < stream->n &&
	       stream->posted - stream->completed < stream->window)
		if (!post_next(stream))
			return;
}

void stream_fail(struct stream *stream)
{
	const uint32_t most = stream->completed + stream->window;

	stream->failed = true;
	stream->succeeded = stream->completed;
	/* The entries of `out` from the first failed request on stay for the final checks. */
	stream->n = rand_in(&stream->world->failure_rand, stream->posted,
			    most < stream->n ? most : stream->n);
}

/*
 * The number of requests that the peer may have executed: those before the mistaken one. A READ
 * with a wrong local segment fails only when its response arrives, so the requests behind it may be
 * executed, too.
 */
uint32_t stream_executable(const struct stream *stream)
{
	const bool sent = stream->conn->failure.kind == FAILURE_SEGMENT &&
			  stream->mistake < stream->posted &&
			  stream->request[stream->mistake].opcode == URXE_WR_RDMA_READ;

	return sent || stream->posted < stream->mistake ? stream->posted : stream->mistake;
}

void stream_stop(struct stream *stream)
{
	if (stream->posted == stream->n)
		return;
	stream->n = stream->posted;
	/* Posts one more request, a signaled one, whose completion shows that the unsignaled ones
	 * before it are complete. */
	if (!stream->failed && stream->posted && !stream->request[stream->posted - 1].signaled)
		stream->n++;
	if (stream_done(stream))
		world_stream_done(stream);
}
