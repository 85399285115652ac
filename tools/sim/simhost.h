/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulated host: one engine, two completion queues, and one registered memory
 * whose addresses are on purpose not pointers.
 */
#ifndef URXE_SIM_SIMHOST_H
#define URXE_SIM_SIMHOST_H

#include <rxe/rxe.h>

#define SIMHOST_PD        7
#define SIMHOST_FIRST_QPN 0x100
/* What peers may do to the memory. */
#define SIMHOST_ACCESS                                                                    \
	(URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC | \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)

/* Index in the host's GID table, by network. */
#define SIMHOST_SGID(net) ((uint8_t)(net))

struct world;
struct endpoint;
struct recv_queue;

/* Completions that the application has not taken yet. */
struct simcq {
	struct urxe_cq *cq;
	struct urxe_wc *ring;
	uint32_t head, tail; /* free-running */
	uint32_t room;       /* a power of two */
};

struct simhost {
	struct world *world;
	uint32_t id;
	struct urxe_dev *dev;
	uint8_t *mem;
	uint64_t mem_size;
	uint64_t iova; /* of mem[0] */
	uint32_t key;  /* of all of mem, with every access right */
	struct simcq send_cq;
	struct simcq recv_cq;
	struct endpoint **end; /* by QPN, from SIMHOST_FIRST_QPN on */
	uint32_t n_ends;
	struct recv_queue **inbox;
	uint32_t n_inboxes;
	bool opens;           /* a connection */
	uint64_t shared_word; /* offset of the word that all streams to here add to */
	uint32_t open;        /* streams from and to here that are not done */
	uint64_t wake;        /* time of the queued EVENT_WAKE; URXE_NEVER = none */
	uint64_t turn;        /* when the application runs next; URXE_NEVER = never */
	uint64_t pause;       /* ns until then, at most */
	uint64_t waiting;     /* the engine's deadline, as far as the world has counted it */
};

/* Takes a piece of the memory, before simhost_start; returns its offset. */
uint64_t simhost_alloc(struct simhost *host, uint64_t length);
/* Makes memory, engine and completion queues. */
void simhost_start(struct simhost *host, uint64_t seed, uint32_t window);
void simhost_free(struct simhost *host);

/* The QP with this number; NULL = none. */
struct endpoint *simhost_end(const struct simhost *host, uint32_t qpn);
/* A segment of the host's memory. */
struct urxe_seg simhost_seg(const struct simhost *host, uint64_t offset, uint32_t length);
/* The oldest completion; false where there is none. */
bool simcq_poll(struct simcq *cq, struct urxe_wc *wc);

/* A frame for the host. */
void simhost_receive(struct simhost *host, uint8_t *data, uint32_t len);
/* Lets the engine send what it wants and can. */
void simhost_send(struct simhost *host);
/* Queues the next wake-up: for the engine's deadline, or the application's turn. */
void simhost_schedule(struct simhost *host);

#endif
