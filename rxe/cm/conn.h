/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections, and the tables that find the connection of a message. For the files of this folder.
 * As in cm/cm.h, one thread at a time uses a struct cm, and `now` is in nanoseconds. */
#ifndef URXE_CM_CONN_H
#define URXE_CM_CONN_H

#include <cm/cm.h>

#include <sys/queue.h>

#include "heap.h"
#include "siphash.h"

#define CM_BUCKETS 4096u /* buckets of each table */
/*
 * Most connections that their owner has released, and that wait for a DREP or the end of TIMEWAIT.
 * If there are more, the manager frees the oldest. Else an owner that connects and releases without
 * end could use up all connections.
 */
#define CM_RELEASED_MAX 16384u
/* Each of the 65,536 rdma_cm IDs owns at most one connection; the others are released. */
#define CM_CONNS_MAX (65536u + CM_RELEASED_MAX)

struct cm_conn {
	struct cm *cm;
	void *ctx;
	bool owned;
	bool frozen; /* cm_freeze */
	enum cm_state state;
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t remote_guid;
	uint32_t local_qpn; /* QPN that a DREQ has to name; 0: any */
	uint64_t tid;       /* transaction ID of the outstanding request, of either side */
	struct cm_channel channel;
	uint64_t timeout_ns; /* time within which the peer has to answer */
	uint8_t max_retries;
	uint8_t retries; /* repetitions left */
	bool by_peer;    /* whether the connection is in by_peer and by_qpn */
	struct heap_node timer;
	bool half_open;   /* counted in cm.half_open[source] */
	bool unconfirmed; /* in cm.unconfirmed */
	uint16_t source;  /* bucket of cm.half_open: a hash of the sender's address and MAC, and of
			     the service ID */
	uint8_t sent[CM_MAD_LEN]; /* the last message, for repetitions */
	uint16_t sent_attr;
	bool unsent;   /* `sent` has not been sent: cm_tick sends it */
	bool released; /* in cm.released */
	TAILQ_ENTRY(cm_conn) unconfirmed_link;
	TAILQ_ENTRY(cm_conn) released_link;
	LIST_ENTRY(cm_conn) id_link;
	LIST_ENTRY(cm_conn) peer_link; /* by the peer's GUID and ID */
	LIST_ENTRY(cm_conn) qpn_link;  /* by the peer's GUID and QPN */
};
LIST_HEAD(cm_conn_list, cm_conn);
TAILQ_HEAD(cm_conn_queue, cm_conn);

/*
 * A request is half open until its sender has confirmed our answer, because its source address may
 * be forged. One sender may have CM_HALF_OPEN_MAX half-open requests to one service ID: a host has
 * many users, and a listener that answers no request must not use up the limit of others. A sender
 * is a source address with a MAC, so that another station that uses a host's address cannot use up
 * the limit of that host. Senders and services with equal hashes share a limit. At most
 * CM_UNCONFIRMED_MAX answered requests wait for the confirmation. For a further one the manager
 * gives up the oldest one of a sender that is not `known` (struct cm_path), or else the oldest.
 */
#define CM_HALF_OPEN_MAX   4096u
#define CM_UNCONFIRMED_MAX 8192u

struct cm {
	const struct cm_ops *ops;
	void *ctx;
	uint64_t ca_guid;
	struct siphash_key key;
	uint64_t drawn; /* random numbers drawn so far */
	uint32_t n;     /* number of connections */
	struct heap timers;
	uint64_t counters[CM_COUNTER_COUNT];
	uint32_t half_open[CM_BUCKETS]; /* number of half-open connections, by cm_conn.source */
	struct cm_conn_queue unconfirmed[2]; /* oldest first; index: cm_path.known of the sender */
	uint32_t n_unconfirmed;
	struct cm_conn_queue released; /* oldest first */
	uint32_t n_released;
	uint32_t n_frozen;
	struct cm_conn_list by_id[CM_BUCKETS];
	struct cm_conn_list by_peer[CM_BUCKETS];
	struct cm_conn_list by_qpn[CM_BUCKETS];
};

/* Whether the state of a connection is in a set; a set is CM_S of its states, joined by |. */
#define CM_IN(conn, set) (1u << (conn)->state & (set))
#define CM_S(state)      (1u << CM_##state)

/*
 * Longest response timeout of a REQ and longest TIMEWAIT, as an exponent: 17 s. Exponents go to 31,
 * 2.4 hours, and an ended connection would use memory for that time. An MRA may ask for longer.
 */
#define CM_TIMEOUT_MAX 22

static inline uint8_t cm_bounded(uint8_t t)
{
	return t < CM_TIMEOUT_MAX ? t : CM_TIMEOUT_MAX;
}

/* 4.096 us * 2^t, in ns (IBA 12.7.12). */
static inline uint64_t cm_time_ns(uint8_t t)
{
	return UINT64_C(4096) << (t & 31);
}

/* --- conn.c */

/* A random number that cannot be derived from other ones without the seed of cm_create. */
uint64_t cm_draw(struct cm *cm);

/* A connection in CM_IDLE, with a random local ID. NULL: no memory, or CM_CONNS_MAX exist. */
struct cm_conn *cm_conn_new(struct cm *cm, const struct cm_path *path);
/* A connection in CM_IDLE, with this local ID. NULL: another connection has the ID, no memory, or
 * CM_CONNS_MAX exist. */
struct cm_conn *cm_conn_new_as(struct cm *cm, const struct cm_path *path, uint32_t local_id);
/* Takes the connection out of all tables, lists and counts, and frees it, without an event. */
void cm_conn_free(struct cm_conn *conn);
bool cm_has_id(const struct cm *cm, uint32_t local_id);
/*
 * The cm_find functions return the connection of a message that came from `path`; NULL: none. An
 * attacker can guess GUIDs, QPNs and IDs, so the source address of the message must be the address
 * of the connection's peer.
 */
/* Finds the connection by our ID. */
struct cm_conn *cm_find_from(const struct cm *cm, const struct cm_path *path, uint32_t local_id);
/* Finds the connection by our ID and the peer's ID. */
struct cm_conn *cm_find_pair(const struct cm *cm, const struct cm_path *path, uint32_t local_id,
			     uint32_t remote_id);
/* Finds the connection by the peer's GUID and ID. */
struct cm_conn *cm_find_peer(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			     uint32_t remote_id);
/*
 * Finds the connection by the peer's GUID and QPN, but not in TIMEWAIT, when the peer may use the
 * QPN again. Finds a half-open connection only if its request came from the MAC of this message:
 * any station can forge a request with the address, GUID and QPN of a host.
 */
struct cm_conn *cm_find_qpn(const struct cm *cm, const struct cm_path *path, uint64_t guid,
			    uint32_t qpn);
/*
 * True: the sender has CM_HALF_OPEN_MAX half-open requests to this service ID. The caller ignores
 * this further one, which the function has added to the counter CM_COUNT_CROWDED. Always false for
 * senders on this host.
 */
bool cm_is_crowded(struct cm *cm, const struct cm_path *path, uint64_t service_id);
/* The connection is half open from now on, until it is established or ends. */
void cm_enter_half_open(struct cm_conn *conn);
/* The connection is established, ends or is frozen: it is no longer half open, nor in
 * `unconfirmed`. */
void cm_leave_half_open(struct cm_conn *conn);
/*
 * The request of a half-open connection has been answered: adds the connection to `unconfirmed`. If
 * the list is full, the manager first gives up the oldest connection of an unknown sender, else the
 * oldest of all, and tells its owner.
 */
void cm_enter_unconfirmed(struct cm_conn *conn, uint64_t now);
/* The owner has released the connection: adds it to the list `released`. */
void cm_enter_released(struct cm_conn *conn);
/* Frees the oldest released connections while there are more than CM_RELEASED_MAX. First sends a
 * DREQ that still waits for cm_tick. */
void cm_drop_released(struct cm *cm);
/* Adds the connection to by_peer and by_qpn: remote_guid, remote_id and remote_qpn are known. */
void cm_know_peer(struct cm_conn *conn);

/*
 * True: the answer has the transaction ID of the outstanding request. False: the answer's sender
 * may not have seen the request, and the caller ignores the answer; the function has added it to
 * the counter CM_COUNT_FORGED.
 */
bool cm_is_answer(const struct cm_conn *conn, const struct cm_mad *mad);

void cm_count(struct cm *cm, enum cm_counter counter);
/* Calls cm_ops.event, if the connection has an owner. */
void cm_tell(struct cm_conn *conn, enum cm_event event, const struct cm_mad *mad);

/* Sends a message and keeps it for repetitions; the caller sets mad->tid. */
void cm_post(struct cm_conn *conn, const struct cm_mad *mad);
/* Sends the kept message again. */
void cm_post_again(struct cm_conn *conn);
/* Keeps a message: the next cm_tick sends it, and starts the timer for its answer. So if a process
 * with thousands of connections ends, the manager does not send a message for each at once. */
void cm_post_by_tick(struct cm_conn *conn, uint64_t now, const struct cm_mad *mad);
/* As cm_post_by_tick, for the message that is kept already. */
void cm_post_again_by_tick(struct cm_conn *conn, uint64_t now);
/* Sends a message without keeping it: the timer repeats the last posted message. */
void cm_post_aside(struct cm_conn *conn, const struct cm_mad *mad);
/* Starts the timer for an answer to the last posted message, with conn->max_retries repetitions. */
void cm_await(struct cm_conn *conn, uint64_t now);
/* Stops the connection's timer. */
void cm_await_no_more(struct cm_conn *conn);

/* The peer has confirmed the connection: stops its timer, and sets the state. The caller tells the
 * owner. */
void cm_enter_established(struct cm_conn *conn);
/* --- freeze.c */

/* After a thaw or a restoration: starts the timer of the state anew, counts a half-open connection
 * again, and lets cm_tick send a DREQ again. */
void cm_go_on(struct cm_conn *conn, uint64_t now);
/* True: the message is for a frozen connection. */
bool cm_is_for_frozen(const struct cm *cm, const struct cm_path *path, const struct cm_mad *mad);

/* --- conn.c */

/* Stops the timer, moves the connection to CM_IDLE, and frees it if it has no owner. */
void cm_enter_idle(struct cm_conn *conn);
/* Moves the connection to CM_TIMEWAIT, from which cm_tick moves it to CM_IDLE. Never frees it. */
void cm_enter_timewait(struct cm_conn *conn, uint64_t now);

/* Local CA ACK delay (IBA 11.2.2.2), as device attributes report it: 4.096 us * 2^15, 134 ms. */
#define CM_ACK_DELAY 15
/* The QP's ACK timeout for a path: the round trip (twice `lifetime`) plus the peer's `ack_delay`
 * (IBA 12.7.34). Arguments and result are exponents: 4.096 us * 2^n. */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t lifetime);

/*
 * The tables find a peer's request by the CA GUID and the communication ID of its sender
 * (cm_find_peer). A SIDR_REQ has no GUID: this hash of the peer's GID (path->dgid) takes its place.
 */
uint64_t cm_path_key(const struct cm_path *path);

/* Copies private data to the message; -EINVAL: longer than messages of mad->attr permit. */
int cm_set_private(struct cm_mad *mad, const void *data, uint32_t len);

/* Both return a message with the connection's IDs and tid: cm_make_mra an MRA about a REQ or REP,
 * cm_make_pair an RTU, DREQ or DREP (`attr`). */
struct cm_mad cm_make_mra(const struct cm_conn *conn, enum cm_about about);
struct cm_mad cm_make_pair(const struct cm_conn *conn, enum cm_attr attr);

/* --- agent.c */
/* The peer has not answered, or `unconfirmed` is full: tells the owner, and moves the connection to
 * CM_IDLE, or to CM_TIMEWAIT if the peer has not answered a DREQ. */
void cm_report_no_answer(struct cm_conn *conn, uint64_t now);

/* --- sidr.c */
void cm_on_sidr_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad);
void cm_on_sidr_rep(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad);

#endif
