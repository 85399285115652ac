/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device under test, opened once a test, and queue pairs on it that talk to each other. */
#ifndef URXE_CONFORMANCE_HCA_H
#define URXE_CONFORMANCE_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define PORT 1
#define QKEY 0x11111111

struct hca {
	const char *name; /* NULL: the first there is */
	int gid_index;    /* -1: the first RoCEv2 address that is not link-local */
	int many;         /* objects of a kind that are made at most */
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;
};

extern struct hca hca;

/* The device of that name, or the first one; NULL: there is none. */
struct ibv_device *hca_find(const char *name);
void hca_open(void);

/* How many objects of a kind are made to see whether the advertised number holds: not more than
 * 65,536. */
int limit_of(int advertised);

/* --- Queue pairs. */

#define SIDE_ROOM  8192
#define SIDE_DEPTH 16
#define SIDE_SGES  4
#define WAIT_MS    30000 /* for what has to come */

/* One QP with its own CQ, or CQs that were given, and memory that may be accessed remotely. */
struct side {
	struct ibv_cq *cq; /* sends and receives */
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* UD: to this host */
	uint8_t room[SIDE_ROOM] __attribute__((aligned(4096)));
};

/*
 * Makes what is not there yet, with the QP in RESET. ops: IBV_QP_EX_WITH_*, 0 for a QP
 * without ibv_wr_*.
 */
void side_create(struct side *s, enum ibv_qp_type type, uint64_t ops);
/* Makes what a side that has a QP lacks beside it: memory and, for UD, an address. */
void side_complete(struct side *s);
/* The attributes of a step, and the mask of those that the type requires. */
int side_attr(struct side *s, const struct side *peer, enum ibv_qp_state to,
	      struct ibv_qp_attr *attr);
/* One step; the errno value. */
int side_step(struct side *s, const struct side *peer, enum ibv_qp_state to);
/* Up from RESET to a state on the way to RTS. */
void side_up(struct side *s, const struct side *peer, enum ibv_qp_state to);
void side_destroy(struct side *s);
enum ibv_qp_state side_state(const struct side *s);

/* Two of a type, connected, in RTS. */
void pair_open(struct side pair[2], enum ibv_qp_type type, uint64_t ops);
void pair_close(struct side pair[2]);
/* Brings both back to RTS after an error, with nothing posted. */
void pair_again(struct side pair[2]);

/* --- Requests and completions. */

struct ibv_sge side_sge(const struct side *s, uint32_t offset, uint32_t length);
/* A signaled request with one segment, not posted yet; remote: where it writes or reads. */
struct ibv_send_wr side_wr(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			   const struct side *remote);
/* UD: to another QP of this host. */
void wr_to(struct ibv_send_wr *wr, const struct side *s, const struct side *to);
/* The errno value. */
int post_send(struct side *s, struct ibv_send_wr *wr);
int post_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_srq_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length);
/* Whether the next completion comes. */
bool await_wc(struct ibv_cq *cq, struct ibv_wc *wc);
/* The next completion, without which the test cannot go on. */
struct ibv_wc next_wc(struct ibv_cq *cq);
/* Waits for a completion as long as one would have been under way: returns whether it came. */
bool any_wc(struct ibv_cq *cq, struct ibv_wc *wc);

/* Whether the next asynchronous event comes; it is acknowledged. */
bool next_event(struct ibv_async_event *event);
/* Whether one is there now. */
bool any_event(struct ibv_async_event *event);

#endif
