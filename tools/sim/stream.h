/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requests that one end of a connection posts, and what has to become of them. */
#ifndef URXE_SIM_STREAM_H
#define URXE_SIM_STREAM_H

#include "sim/content.h"
#include "sim/simhost.h"

#define STREAM_WORDS 4 /* atomics' words that belong to this stream */

struct simconn;
struct endpoint;

/*
 * A type 2 window over the target area. The responder binds it, the requester
 * uses its key, and either of them invalidates it.
 */
enum window_state { WINDOW_FREE, WINDOW_BINDING, WINDOW_BOUND, WINDOW_GOING };

struct window {
	struct urxe_mw *handle; /* NULL = there is none */
	uint8_t state;          /* enum window_state */
	uint32_t key;           /* while bound */
	uint32_t users;         /* outstanding requests with that key */
};

/* What is known of a request for as long as the world lasts. */
struct request {
	uint8_t opcode; /* enum urxe_wr_opcode */
	bool signaled;
	bool consumes; /* a receive request at the peer */
	bool delivered;
	uint32_t length;
	uint32_t target; /* offset in the target area; RDMA only */
};

/* And while it is outstanding. */
struct outstanding {
	bool window; /* goes by the window's key */
	bool shared; /* atomic on the host's shared word: its result depends on others */
	struct layout layout;
	uint64_t original; /* what an atomic on an own word has to return */
	uint64_t compare;  /* atomic on the shared word */
	uint64_t add;      /* ...and what it adds, if it does */
	uint64_t posted;   /* ns */
	uint8_t *expected; /* READ: what it has to bring; NULL before and after */
};

struct stream {
	struct world *world;
	struct simconn *conn;
	unsigned side; /* of the requester */
	uint64_t seed;
	uint32_t n; /* requests to post in all */
	uint32_t posted;
	uint32_t completed; /* how many are known to be complete */
	uint32_t delivered; /* RC and UC: index of the next request that may arrive */
	uint64_t arrivals;  /* UC, UD: messages received */
	uint64_t bytes;     /* of completed requests */
	uint64_t warm;      /* of those, completed before goodput counted... */
	uint64_t counted;   /* ...and while it did */
	uint32_t window;
	uint64_t slots;  /* offset of a slot for each outstanding one on the requester's host */
	uint64_t target; /* offset of the target area on the responder's host */
	uint64_t words;  /* offset of the words there */
	uint32_t target_size; /* bytes that the peer writes and reads */
	uint32_t target_used; /* UC: every WRITE gets a place of its own */
	uint8_t *model;       /* what the target area has to hold (UC: may hold) */
	uint64_t word_model[STREAM_WORDS];
	struct window mw;     /* on the responder's host */
	uint64_t last_shared; /* what the shared word held when last seen */
	struct request *request;
	struct outstanding *out; /* ring of the window */
};

/* Chooses how much it sends and takes the memory for it. */
void stream_plan(struct stream *stream, struct world *world, struct simconn *conn, unsigned side);
/* Fills its target area and words. */
void stream_open(struct stream *stream);
void stream_free(struct stream *stream);
/* Posts some more requests, where the window allows. */
void stream_post(struct stream *stream);
/* Posts nothing more, except what it needs to see its end. */
void stream_stop(struct stream *stream);
/* What the target area held first. */
void stream_initial(const struct stream *stream, uint8_t *data);
struct endpoint *stream_from(const struct stream *stream);
struct endpoint *stream_to(const struct stream *stream);

static inline bool stream_done(const struct stream *stream)
{
	return stream->completed == stream->n;
}

static inline struct outstanding *stream_out(const struct stream *stream, uint32_t index)
{
	return &stream->out[index % stream->window];
}

/* The stream the other way: its requester is this one's responder. */
struct stream *stream_back(const struct stream *stream);

static inline bool is_atomic(uint8_t opcode)
{
	return opcode == URXE_WR_COMPARE_SWAP || opcode == URXE_WR_FETCH_ADD;
}

#endif
