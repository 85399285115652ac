/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "stream.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "require.h"
#include "world.h"

void stream_init(struct stream *stream, struct world *world, struct conn *conn, unsigned side)
{
	uint8_t *mem = world->pair->node[!side]->mem;

	*stream = (struct stream){
		.world = world,
		.conn = conn,
		.side = side,
		.seed = rand_next(&world->rand),
		.n = rand_in(&world->rand, 1, STREAM_MAX_REQUESTS),
		.window = rand_in(&world->rand, 1, conn->attr.cap.max_send_wr),
		.slots = world_alloc(world, side, STREAM_WINDOW * LAYOUT_ROOM),
		.target = world_alloc(world, !side, STREAM_TARGET),
		.words = world_alloc(world, !side, STREAM_WORDS * 8),
	};
	require(stream->window <= STREAM_WINDOW);
	stream->model = malloc(STREAM_TARGET);
	stream->initial = malloc(STREAM_TARGET);
	require(stream->model && stream->initial);
	content_fill(stream->seed, UINT32_MAX, mem + stream->target, STREAM_TARGET);
	memcpy(stream->model, mem + stream->target, STREAM_TARGET);
	memcpy(stream->initial, mem + stream->target, STREAM_TARGET);
	for (unsigned i = 0; i < STREAM_WORDS; i++) {
		stream->word_model[i] = rand_next(&world->rand);
		memcpy(mem + stream->words + 8 * i, &stream->word_model[i], 8);
	}
}

void stream_free(struct stream *stream)
{
	for (uint32_t i = 0; i < stream->n; i++)
		free(stream->request[i].expected);
	free(stream->model);
	free(stream->initial);
}

bool stream_done(const struct stream *stream)
{
	return stream->completed == stream->n;
}

uint32_t stream_slot(const struct stream *stream, uint32_t index)
{
	return stream->slots + index % STREAM_WINDOW * LAYOUT_ROOM;
}

/* From nothing to more than 64 KiB, and often next to a packet's border. */
static uint32_t random_length(struct stream *stream)
{
	struct rand *r = &stream->world->rand;
	uint32_t mtu = 128u << stream->conn->attr.path_mtu;
	uint32_t length;

	if (stream->conn->attr.type == URXE_QPT_UD)
		return rand_chance(r, 0.3) ? mtu : rand_below(r, mtu + 1);
	if (rand_chance(r, 0.1))
		return 0;
	length = rand_chance(r, 0.3) ? mtu * rand_in(r, 1, 6) - 1 + rand_below(r, 3)
				     : rand_below(r, 1u << rand_in(r, 1, 17));
	return length <= CONTENT_MAX ? length : CONTENT_MAX;
}

static uint8_t random_opcode(struct stream *stream)
{
	static const uint8_t rc[] = {
		URXE_WR_SEND,           URXE_WR_SEND_IMM,     URXE_WR_RDMA_WRITE,
		URXE_WR_RDMA_WRITE,     URXE_WR_RDMA_READ,    URXE_WR_RDMA_READ,
		URXE_WR_RDMA_WRITE_IMM, URXE_WR_COMPARE_SWAP, URXE_WR_FETCH_ADD};
	static const uint8_t uc[] = {URXE_WR_SEND, URXE_WR_SEND_IMM, URXE_WR_RDMA_WRITE,
				     URXE_WR_RDMA_WRITE_IMM};
	struct rand *r = &stream->world->rand;

	switch (stream->conn->attr.type) {
	case URXE_QPT_RC: return rc[rand_below(r, sizeof(rc))];
	case URXE_QPT_UC: return uc[rand_below(r, sizeof(uc))];
	default: return uc[rand_below(r, 2)];
	}
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == URXE_WR_COMPARE_SWAP || opcode == URXE_WR_FETCH_ADD;
}

static bool is_write(uint8_t opcode)
{
	return opcode == URXE_WR_RDMA_WRITE || opcode == URXE_WR_RDMA_WRITE_IMM;
}

/*
 * A WRITE may overtake the responses of a READ before it (IBA table 76): where
 * they overlap, the application has to fence.
 */
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
		if (request->length > STREAM_TARGET - stream->target_used)
			request->length = STREAM_TARGET - stream->target_used;
		request->target = stream->target_used;
		stream->target_used += request->length;
	} else {
		request->target = rand_below(r, STREAM_TARGET - request->length);
	}
}

static void prepare_atomic(struct stream *stream, struct request *request, struct urxe_send_wr *wr)
{
	struct rand *r = &stream->world->rand;
	struct node *peer = stream->world->pair->node[!stream->side];
	uint32_t word = rand_below(r, STREAM_WORDS);
	uint64_t *model = &stream->word_model[word];

	request->length = 8;
	wr->compare_add = rand_in(r, 1, 1000);
	request->shared = request->opcode == URXE_WR_FETCH_ADD && rand_chance(r, 0.5);
	if (request->shared) {
		wr->remote_addr = peer->iova + stream->world->shared_word[!stream->side];
		stream->world->shared_sum[!stream->side] += wr->compare_add;
		return;
	}
	wr->remote_addr = peer->iova + stream->words + 8 * word;
	request->original = *model;
	if (request->opcode == URXE_WR_FETCH_ADD) {
		*model += wr->compare_add;
		return;
	}
	wr->swap = rand_next(r);
	if (rand_chance(r, 0.7)) {
		wr->compare_add = *model;
		*model = wr->swap;
	}
}

static void prepare_rdma(struct stream *stream, uint32_t index, struct urxe_send_wr *wr,
			 const uint8_t *content)
{
	struct request *request = &stream->request[index];
	struct node *peer = stream->world->pair->node[!stream->side];

	wr->remote_addr = peer->iova + stream->target + request->target;
	if (request->opcode == URXE_WR_RDMA_READ) {
		request->expected = malloc(request->length + 1);
		require(request->expected);
		memcpy(request->expected, stream->model + request->target, request->length);
		return;
	}
	memcpy(stream->model + request->target, content, request->length);
	if (needs_fence(stream, request))
		wr->flags |= URXE_SEND_FENCE;
}

static void choose(struct stream *stream, uint32_t index)
{
	struct request *request = &stream->request[index];
	struct rand *r = &stream->world->rand;

	request->opcode = random_opcode(stream);
	request->length = is_atomic(request->opcode) ? 8 : random_length(stream);
	if (is_write(request->opcode) || request->opcode == URXE_WR_RDMA_READ)
		choose_target(stream, request);
	if (request->opcode == URXE_WR_SEND && stream->conn->attr.type != URXE_QPT_RC &&
	    request->length < CONTENT_ID_LEN)
		request->opcode = URXE_WR_SEND_IMM;
	request->consumes = request->opcode == URXE_WR_SEND ||
			    request->opcode == URXE_WR_SEND_IMM ||
			    request->opcode == URXE_WR_RDMA_WRITE_IMM;
	/* The window has to move on: at least its last request reports. */
	request->signaled = stream->conn->attr.sq_sig_all || index + 1 == stream->n ||
			    (index + 1) % stream->window == 0 || rand_chance(r, 0.5);
}

/* Posts the request; what the caller's buffers hold afterwards must not matter. */
static int post(struct stream *stream, uint32_t index, struct urxe_send_wr *wr, uint8_t *content)
{
	struct request *request = &stream->request[index];
	struct endpoint *end = &stream->conn->end[stream->side];
	struct rand *r = &stream->world->rand;
	struct urxe_seg segs[LAYOUT_MAX_SEGS];
	bool reads_memory = request->opcode != URXE_WR_RDMA_READ && !is_atomic(request->opcode);
	struct urxe_path path =
		conn_path(stream->conn->attr.net, stream->world->pair->node[!stream->side]);
	int error;

	layout_make(&request->layout, r, stream_slot(stream, index), request->length,
		    is_atomic(request->opcode) ? 1 : LAYOUT_MAX_SEGS);
	layout_paint_gaps(&request->layout, end->node->mem);
	if (reads_memory && request->length <= stream->conn->attr.cap.max_inline &&
	    rand_chance(r, 0.5)) {
		wr->flags |= URXE_SEND_INLINE;
		wr->inline_data = content;
		wr->inline_len = request->length;
	} else {
		if (reads_memory)
			layout_copy_in(&request->layout, end->node->mem, content, request->length);
		for (uint32_t i = 0; i < request->layout.n; i++)
			segs[i] = node_seg(end->node, request->layout.offset[i],
					   request->layout.length[i]);
		wr->segs = segs;
		wr->n_segs = request->layout.n;
	}
	if (stream->conn->attr.type == URXE_QPT_UD) {
		wr->path = &path;
		wr->remote_qpn = stream->conn->end[!stream->side].qpn;
		wr->remote_qkey = stream->conn->attr.qkey;
	}
	error = urxe_post_send(end->qp, wr);
	memset(content, 0xdd, request->length);
	memset(segs, 0xdd, sizeof(segs));
	memset(&path, 0xdd, sizeof(path));
	return error;
}

static bool post_next(struct stream *stream)
{
	uint32_t index = stream->posted;
	struct request *request = &stream->request[index];
	struct rand *r = &stream->world->rand;
	static uint8_t content[CONTENT_MAX + 1];
	struct urxe_send_wr wr;
	int error;

	choose(stream, index);
	wr = (struct urxe_send_wr){
		.wr_id = index,
		.opcode = request->opcode,
		.imm = htonl(index),
		.rkey = stream->world->pair->node[!stream->side]->key,
		.flags = (request->signaled ? URXE_SEND_SIGNALED : 0) |
			 (rand_chance(r, 0.2) ? URXE_SEND_SOLICITED : 0) |
			 (rand_chance(r, 0.1) ? URXE_SEND_FENCE : 0),
	};
	content_fill(stream->seed, index, content, request->length);
	if (is_atomic(request->opcode))
		prepare_atomic(stream, request, &wr);
	else if (!request->consumes || request->opcode == URXE_WR_RDMA_WRITE_IMM)
		prepare_rdma(stream, index, &wr, content);
	error = post(stream, index, &wr, content);
	if (error) {
		world_fail(stream->world, "post_send of request %u refused: %d", index, error);
		return false;
	}
	stream->posted++;
	stream->world->activity++;
	world_note(stream->world, "%c qp %06x posts %u: opcode %u, %u bytes, flags %x",
		   'A' + stream->side, stream->conn->end[stream->side].qpn, index, request->opcode,
		   request->length, wr.flags);
	return true;
}

void stream_post(struct stream *stream)
{
	uint32_t n = rand_below(&stream->world->rand, 6);

	while (n-- && stream->posted < stream->n &&
	       stream->posted - stream->completed < stream->window)
		if (!post_next(stream))
			return;
}
