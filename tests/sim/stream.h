/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requests that one end of a connection posts, and what has to become of them. */
#ifndef URXE_SIM_STREAM_H
#define URXE_SIM_STREAM_H

#include "content.h"
#include "inbox.h"
#include "pair.h"

#define STREAM_MAX_REQUESTS 32
#define STREAM_WINDOW       8       /* slots for sources and results */
#define STREAM_TARGET       131072u /* bytes that the peer writes and reads */
#define STREAM_WORDS        4       /* atomics' words that belong to this stream */

struct world;
struct conn;

struct request {
	uint8_t opcode; /* enum urxe_wr_opcode */
	bool signaled;
	bool consumes; /* a receive request at the peer */
	bool shared;   /* atomic on the node's shared word: its result depends on others */
	bool delivered;
	uint32_t length;
	uint32_t target; /* offset in the target area; RDMA only */
	struct layout layout;
	uint64_t original; /* what an atomic on an own word has to return */
	uint8_t *expected; /* READ: what it has to bring; NULL before and after */
};

struct stream {
	struct world *world;
	struct conn *conn;
	unsigned side; /* of the requester */
	uint64_t seed;
	uint32_t n; /* requests to post in all */
	uint32_t posted;
	uint32_t completed; /* how many are known to be complete */
	uint32_t delivered; /* RC and UC: index of the next request that may arrive */
	uint64_t arrivals;  /* UD: messages received */
	uint32_t window;
	uint32_t slots;       /* offset of STREAM_WINDOW slots on the requester's node */
	uint32_t target;      /* offset of the target area on the responder's node */
	uint32_t words;       /* offset of the words there */
	uint32_t target_used; /* UC: every WRITE gets a place of its own */
	uint8_t *model;       /* what the target area has to hold (UC: may hold) */
	uint8_t *initial;     /* UC: what it held first */
	uint64_t word_model[STREAM_WORDS];
	uint64_t last_shared; /* result of the last addition to the shared word, plus one */
	struct request request[STREAM_MAX_REQUESTS];
};

void stream_init(struct stream *stream, struct world *world, struct conn *conn, unsigned side);
void stream_free(struct stream *stream);
/* Posts some more requests, where the window allows. */
void stream_post(struct stream *stream);
bool stream_done(const struct stream *stream);
/* Offset of the slot that request `index` uses. */
uint32_t stream_slot(const struct stream *stream, uint32_t index);

#endif
