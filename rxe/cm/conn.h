/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A connection, and the tables by which messages find it. */
#ifndef URXE_CM_CONN_H
#define URXE_CM_CONN_H

#include <cm/cm.h>

#include <sys/queue.h>

#include "heap.h"

#define CM_BUCKETS   4096u  /* of each table */
#define CM_CONNS_MAX 65536u /* more than there may be rdma_cm IDs */

struct cm_conn {
	struct cm *cm;
	void *ctx;
	bool owned;
	enum cm_state state;
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t remote_guid;
	uint32_t local_qpn;
	uint64_t tid; /* of the request that is under way, or to be answered */
	struct cm_channel channel;
	uint64_t timeout_ns; /* for an answer of the peer's */
	uint8_t max_retries;
	uint8_t retries; /* that are left */
	bool by_peer;    /* in the two tables below */
	struct heap_node timer;
	uint8_t sent[CM_MAD_LEN]; /* the last message, to be repeated */
	uint16_t sent_attr;
	LIST_ENTRY(cm_conn) id_link;
	LIST_ENTRY(cm_conn) peer_link; /* by the peer's GUID and ID, */
	LIST_ENTRY(cm_conn) qpn_link;  /* and its GUID and QPN */
};
LIST_HEAD(cm_conn_list, cm_conn);

struct cm {
	const struct cm_ops *ops;
	void *ctx;
	uint64_t ca_guid;
	uint64_t tids;
	uint32_t last_id;
	uint32_t n;
	struct heap timers;
	uint64_t counters[CM_COUNTER_COUNT];
	struct cm_conn_list by_id[CM_BUCKETS];
	struct cm_conn_list by_peer[CM_BUCKETS];
	struct cm_conn_list by_qpn[CM_BUCKETS];
};

/* A set of states. */
#define CM_IN(conn, set) (1u << (conn)->state & (set))
#define CM_S(state)      (1u << CM_##state)

/*
 * The longest time that a peer may have us wait, 17 s: exponents go to 31, 2.4 hours, for which
 * each connection that is over would keep its place.
 */
#define CM_PATIENCE 22

static inline uint8_t cm_bounded(uint8_t t)
{
	return t < CM_PATIENCE ? t : CM_PATIENCE;
}

/* 4.096 us * 2^t (IBA 12.7.12) */
static inline uint64_t cm_time_ns(uint8_t t)
{
	return UINT64_C(4096) << (t & 31);
}

/* --- conn.c */

/* A connection in CM_IDLE, with a local ID. NULL: no memory. */
struct cm_conn *cm_conn_new(struct cm *cm, const struct cm_path *path);
/* The same, with that ID; also NULL where another one has it. */
struct cm_conn *cm_conn_new_as(struct cm *cm, const struct cm_path *path, uint32_t local_id);
void cm_conn_free(struct cm_conn *conn);
/*
 * Who a message is about, which came by a path; NULL: there is none. GUIDs, numbers and IDs can be
 * guessed, so a connection is found only by what comes from its peer's address.
 */
struct cm_conn *cm_find_from(const struct cm *cm, const struct cm_path *path, uint32_t local_id);
/* Of a pair of IDs as the peer's message has them. */
struct cm_conn *cm_find_pair(const struct cm *cm, const struct cm_path *path, uint32_t local_id,
			     uint32_t remote_id);
struct cm_conn *cm_find_peer(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			     uint32_t remote_id);
struct cm_conn *cm_find_qpn(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			    uint32_t qpn);
/* Enters it into the tables by peer. */
void cm_know_peer(struct cm_conn *conn);

void cm_count(struct cm *cm, enum cm_counter counter);
void cm_tell(struct cm_conn *conn, enum cm_event event, const struct cm_mad *mad);

/* Sends a message and keeps it; mad->tid is the caller's. */
void cm_post(struct cm_conn *conn, const struct cm_mad *mad);
void cm_post_again(struct cm_conn *conn);
/* Sends a message and keeps the last one. */
void cm_post_aside(struct cm_conn *conn, const struct cm_mad *mad);
/* Wants an answer to what was posted last, after `retries` tries more. */
void cm_await(struct cm_conn *conn, uint64_t now);
void cm_await_no_more(struct cm_conn *conn);

/* Ways to the end. A connection without an owner may be gone afterwards. */
void cm_enter_idle(struct cm_conn *conn);
void cm_enter_timewait(struct cm_conn *conn, uint64_t now);

/* How long the device may take to acknowledge (IBA 11.2.2.2), as its attributes say. */
#define CM_ACK_DELAY 15
/* The QP's timeout for a path: the time of its way there and back (IBA 12.7.34). */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t lifetime);

/*
 * Requests for datagrams do not say whose they are but by their source address; in the place
 * of a GUID, which are the makers' numbers, this keeps them apart.
 */
uint64_t cm_path_key(const struct cm_path *path);

/* Copies private data; -EINVAL where there is more than the message takes. */
int cm_set_private(struct cm_mad *mad, const void *data, uint32_t len);

/* Messages that are built in more than one place. */
struct cm_mad cm_make_mra(const struct cm_conn *conn, enum cm_about about);
struct cm_mad cm_make_pair(const struct cm_conn *conn, enum cm_attr attr);

/* --- sidr.c */
void cm_on_sidr_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad);
void cm_on_sidr_rep(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad);

#endif
