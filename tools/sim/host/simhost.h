/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulated host: one engine, two completion queues and one memory region. The region's addresses
 * are not pointers, so an engine that uses such an address as a pointer fails.
 */
#ifndef URXE_SIM_HOST_SIMHOST_H
#define URXE_SIM_HOST_SIMHOST_H

#include <rxe/rxe.h>

#include "sim/host/host_recording.h"

#define SIMHOST_EXTENTS   3 /* of the memory region */
#define SIMHOST_PD        7
#define SIMHOST_FIRST_QPN 0x100
/* Access rights of peers to the memory. */
#define SIMHOST_ACCESS                                                                    \
	(URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC | \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)

/* Index in the host's GID table, by network. */
#define SIMHOST_SGID(net) ((uint8_t)(net))

/*
 * The context of a QP is its endpoint or its member, and that of an SRQ its place in recv_queue.
 * All begin with the pointer to the receive queue, because the engine's callbacks get either
 * context.
 */
#define SIMHOST_RECV_QUEUE(ctx) (*(struct recv_queue **)(ctx))

struct world;
struct endpoint;
struct recv_queue;

/* A completion queue: completions that the application has not polled yet. */
struct simcq {
	struct simhost *host;
	struct urxe_cq *cq;
	struct urxe_wc *ring;
	uint32_t head, tail; /* free-running */
	uint32_t room;       /* a power of two */
	bool armed;          /* the application has requested an event for the next completion... */
	bool solicited_only; /* ...only for one that is solicited or has an error */
};

struct simhost {
	struct world *world;
	uint32_t id;
	struct urxe_dev *dev;
	struct urxe_counters frozen_counters; /* of the engine, while there is no `dev` */
	uint8_t *mem;
	uint64_t mem_size;
	uint64_t iova;      /* of mem[0] */
	struct urxe_mr *mr; /* all of mem, with every access right */
	uint32_t key;
	struct urxe_extent pages[2]; /* of the newest fast registration */
	struct simcq send_cq;
	struct simcq recv_cq;
	struct endpoint **end; /* by QPN, from SIMHOST_FIRST_QPN on */
	uint32_t n_ends;
	struct recv_queue **recv_queue;
	uint32_t n_recv_queues;
	bool opens;           /* the host opens a connection */
	bool gso;             /* its engine may send and receive UDP GSO packets */
	uint64_t shared_word; /* offset of the word that all streams to this host add to */
	uint32_t open;        /* streams from and to this host that are not done */
	/* Time of the earliest EVENT_WAKE in the queue, URXE_NEVER = none; later ones do
	 * nothing. */
	uint64_t wake;
	uint64_t turn;  /* next turn of the application; URXE_NEVER = none */
	uint64_t pause; /* longest random time to the next turn, ns */
	/* The engine's deadline when the host last updated world.n_waiting, which counts it unless
	 * it is URXE_NEVER. */
	uint64_t waiting;
	struct host_recording recording; /* of the engine */
	/* While the host is frozen (migrate.h): the state of its engine, which does not exist. */
	uint8_t *saved;
	size_t saved_length;
	struct urxe_extent extents[SIMHOST_EXTENTS]; /* of the restored region */
	uint64_t saved_mem;                          /* address of the memory when the state was
							saved */
};

extern const struct urxe_ops simhost_ops;

/* Reserves a piece of the memory, before simhost_start; returns its offset. */
uint64_t simhost_alloc(struct simhost *host, uint64_t length);
/*
 * Makes memory, engine and completion queues. `window`: most unacknowledged packets of a QP; 0 =
 * the engine's default.
 */
void simhost_start(struct simhost *host, uint64_t seed, uint32_t window);
/* Registers the memory again, with the same rights; returns the engine's result. */
int simhost_register_again(struct simhost *host);
void simhost_free(struct simhost *host);

/* The extents of the memory region: accesses cross their borders, but no atomic does. */
void simhost_extents(const struct simhost *host, struct urxe_extent extents[SIMHOST_EXTENTS]);

/* Sets `pages` to two extents, which are `length` bytes of the memory from `offset` on. No atomic
 * crosses their border. */
void simhost_pages(struct simhost *host, uint64_t offset, uint32_t length);

/* The QP with this number; NULL = none. */
struct endpoint *simhost_end(const struct simhost *host, uint32_t qpn);
/* A segment of the host's memory. */
struct urxe_seg simhost_seg(const struct simhost *host, uint64_t offset, uint32_t length);
/* Adds a completion. */
void simcq_push(struct simcq *cq, const struct urxe_wc *wc);
/* Removes the oldest completion; false: the queue is empty. */
bool simcq_poll(struct simcq *cq, struct urxe_wc *wc);
/* Requests an event at random, if the queue is empty. */
void simcq_arm(struct simcq *cq);
/* Frees the completions, and forgets the engine's queue. */
void simcq_free(struct simcq *cq);

/* Gives a received frame to the engine. */
void simhost_receive(struct simhost *host, uint8_t *data, uint32_t len);
/* Sends the engine's frames while the cable is free. */
void simhost_send(struct simhost *host);
/* Queues EVENT_WAKE for the engine's deadline or the application's turn. */
void simhost_schedule(struct simhost *host);

#endif
