/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream: the requests that one end of a connection posts, and a model of their expected effects.
 * The posting end is the requester, the other end the responder.
 */
#ifndef URXE_SIM_HOST_STREAM_H
#define URXE_SIM_HOST_STREAM_H

#include "sim/host/content.h"
#include "sim/host/simhost.h"

#define STREAM_WORDS 4 /* words for atomics of this stream alone */

struct simconn;
struct endpoint;

/* A bind (BINDING) or an invalidation (INVALIDATING) is posted, and not complete. */
enum window_state { WINDOW_FREE, WINDOW_BINDING, WINDOW_BOUND, WINDOW_INVALIDATING };

/*
 * A type 2 memory window over the target area. The responder binds it, the requester uses its key,
 * and either of them invalidates it. With --fast-regions, fast registrations take the place of some
 * windows.
 */

struct window {
	struct urxe_mw *handle;    /* NULL = no window */
	struct urxe_fast_mr *fast; /* the fast registration in place of a window; NULL = none */
	uint8_t state;             /* enum window_state */
	uint32_t key;              /* while bound */
	uint32_t users;            /* outstanding requests that use the key */
	uint32_t saved_key;        /* while the responder's host is frozen */
};

/* A request, kept until the end of the simulation. */
struct request {
	uint8_t opcode; /* enum urxe_wr_opcode */
	uint8_t flags;  /* enum urxe_send_flag */
	bool signaled;
	bool consumes; /* consumes a receive request of the peer */
	bool delivered;
	uint32_t length;
	uint32_t target; /* offset in the target area; RDMA only */
};

/* Further state of a request while it is outstanding. */
struct outstanding {
	bool window; /* uses the key of the memory window */
	bool shared; /* atomic on the host's shared word, to which other streams add too */
	struct layout layout;
	uint32_t word;     /* atomic on the stream's own words: index of the word */
	uint64_t original; /* its expected result */
	uint64_t compare;  /* compare value of an atomic on the shared word */
	uint64_t add;      /* amount that it adds if it succeeds */
	uint64_t posted;   /* ns */
	uint8_t *expected; /* READ: expected data; NULL for others */
};

struct stream {
	struct world *world;
	struct simconn *conn;
	unsigned side; /* of the requester */
	uint64_t seed;
	uint32_t n; /* total number of requests */
	uint32_t posted;
	uint32_t completed; /* requests known to be complete */
	bool failed;        /* a request has ended in an error... */
	uint32_t succeeded; /* ...after this many that succeeded */
	/* Index of the mistaken request or, if an end went to the error state (failure.h), of the
	 * first request posted afterwards; UINT32_MAX = none. */
	uint32_t mistake;
	uint32_t delivered; /* 1 + index of the last message that arrived; 0 = none */
	uint64_t arrivals;  /* messages received */
	uint64_t lost;      /* frames that the network lost, or corrupted */
	uint32_t given_up; /* of UC on a shared queue: messages whose receive ended with an error */
	/* UC on a shared queue: SENDs whose first packet reached the responder, and messages of
	 * several packets that arrived. */
	uint64_t begun, ended;
	uint64_t bytes;   /* of completed requests */
	uint64_t warm;    /* value of bytes when the measurement of goodput began */
	uint64_t counted; /* bytes during that measurement */
	uint32_t window;  /* outstanding requests, at most */
	uint64_t slots;   /* offset of one slot per outstanding request, on the requester's host */
	uint64_t target;  /* offset of the target area on the responder's host */
	uint64_t words;   /* offset of the words, on the responder's host */
	uint32_t target_size; /* bytes of the target area */
	uint32_t target_used; /* UC: bytes used; WRITEs never overlap */
	uint8_t *model;       /* expected content of the target area */
	uint64_t word_model[STREAM_WORDS];
	struct window mw;     /* on the responder's host */
	uint64_t last_shared; /* last known value of the shared word */
	struct request *request;
	struct outstanding *out; /* ring of `window` entries */
};

/* Chooses the number of requests, and reserves their memory on both hosts. */
void stream_plan(struct stream *stream, struct world *world, struct simconn *conn, unsigned side);
/* Fills the target area and the words. On RC creates the memory window, if the responder posts
 * requests, too: one of them binds it. */
void stream_open(struct stream *stream);
void stream_free(struct stream *stream);
/* Posts requests within the window: in bulk traffic as many as it permits, else a random number.
 * Posts none while the responder has withdrawn the rights. */
void stream_post(struct stream *stream);
/* Ends the stream: posts nothing more but a signaled request if the last one was unsignaled. */
void stream_stop(struct stream *stream);
/* Writes the initial content of the target area, target_size bytes, to data. */
void stream_initial(const struct stream *stream, uint8_t *data);
/* The newest key of a window or fast registration. */
uint32_t window_key(const struct window *window);
/* The requester's end and the responder's end of the stream. */
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

/* Chooses the request's local segments, by its opcode and length, and paints the gaps between. */
void stream_make_layout(struct stream *stream, uint32_t index);
/* Call it when a request has ended in an error: the application then posts at most a few more. */
void stream_fail(struct stream *stream);
/* The peer can have executed only requests below this index. */
uint32_t stream_executable(const struct stream *stream);
/* The stream in the opposite direction of the same connection. */
struct stream *stream_back(const struct stream *stream);

/* Whether the operation writes its content to the target area. */
static inline bool is_write(uint8_t opcode)
{
	return opcode == URXE_WR_RDMA_WRITE || opcode == URXE_WR_RDMA_WRITE_IMM ||
	       opcode == URXE_WR_ATOMIC_WRITE;
}

static inline bool is_atomic(uint8_t opcode)
{
	return opcode == URXE_WR_COMPARE_SWAP || opcode == URXE_WR_FETCH_ADD;
}

#endif
