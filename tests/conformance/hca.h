/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device under test, which each test opens once, and connected queue pairs on it. */
#ifndef URXE_CONFORMANCE_HCA_H
#define URXE_CONFORMANCE_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define PORT 1
#define QKEY 0x11111111

struct hca {
	const char *name; /* NULL: the first device */
	int gid_index;    /* -1: the first RoCEv2 address that is not link-local */
	int many;         /* maximum number of objects of a kind that a test creates */
	bool partial;     /* the driver may lack what hca_lacks names */
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;
};

extern struct hca hca;

/* The device with this name, or the first device if name is NULL. NULL: no such device. */
struct ibv_device *hca_find(const char *name);
void hca_open(void);

/* Number of objects of a kind that a test creates to check an advertised limit: the limit, but at
 * most 65,536. */
int limit_of(int advertised);
/* Whether the tests expect queue pairs of a type: with hca.partial only if the driver makes them.
 */
bool hca_has(enum ibv_qp_type type);
/* The driver has refused a feature with EOPNOTSUPP: with hca.partial ends the test without a
 * result, else fails it. */
void hca_lacks(const char *feature) __attribute__((noreturn));

/* --- Queue pairs */

#define SIDE_ROOM  8192
#define SIDE_DEPTH 16
#define SIDE_SGES  4
#define WAIT_MS    30000 /* timeout for completions and events that must come */

/* One QP with a CQ, and memory with remote access rights. */
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
 * Creates the objects of the side that are NULL, with the QP in RESET. ops: IBV_QP_EX_WITH_*, 0 for
 * a QP without ibv_wr_*.
 */
void side_create(struct side *s, enum ibv_qp_type type, uint64_t ops);
/* Adds memory and, for UD, an address handle to a side that has a QP. */
void side_complete(struct side *s);
/* Fills in the attributes of a transition; returns the mask of the attributes that the QP type
 * requires. */
int side_attr(struct side *s, const struct side *peer, enum ibv_qp_state to,
	      struct ibv_qp_attr *attr);
/* One transition; returns the errno value. */
int side_step(struct side *s, const struct side *peer, enum ibv_qp_state to);
/* From RESET to INIT, RTR or RTS. */
void side_up(struct side *s, const struct side *peer, enum ibv_qp_state to);
void side_destroy(struct side *s);
enum ibv_qp_state side_state(const struct side *s);

/* Creates two QPs of a type, connected and in RTS. */
void pair_open(struct side pair[2], enum ibv_qp_type type, uint64_t ops);
void pair_close(struct side pair[2]);
/* Brings both QPs from the error state back to RTS, with empty queues. */
void pair_again(struct side pair[2]);

/* --- Requests and completions */

struct ibv_sge side_sge(const struct side *s, uint32_t offset, uint32_t length);
/* Makes a signaled request with one SGE. remote: the side whose memory it writes or reads. */
struct ibv_send_wr side_wr(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			   const struct side *remote);
/* UD: addresses the request to another QP of this host. */
void wr_to(struct ibv_send_wr *wr, const struct side *s, const struct side *to);
/* These return the errno value. */
int post_send(struct side *s, struct ibv_send_wr *wr);
int post_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_srq_recv(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t length);
/* Whether a completion arrives within WAIT_MS. */
bool await_wc(struct ibv_cq *cq, struct ibv_wc *wc);
/* Waits for the next completion; without one the test fails. */
struct ibv_wc next_wc(struct ibv_cq *cq);
/* Whether a completion arrives within the time that a message needs. */
bool any_wc(struct ibv_cq *cq, struct ibv_wc *wc);

/* Whether an asynchronous event arrives within WAIT_MS; acknowledges it. */
bool next_event(struct ibv_async_event *event);
/* Whether an asynchronous event is pending now. */
bool any_event(struct ibv_async_event *event);

#endif
