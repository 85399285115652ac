/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The communication manager (IBA volume 1, chapter 12): connections, and the
 * resolution of service IDs for datagrams.
 *
 * The manager performs no I/O: the owner passes messages and the time, and gets messages and events
 * by callbacks. Time is in nanoseconds from any fixed point and must not go back. One thread at a
 * time; callbacks must not call the manager. Functions that return int return 0 or a negative errno
 * value; -EINVAL: the state or an argument forbids the call, and nothing has changed.
 */
#ifndef URXE_CM_CM_H
#define URXE_CM_CM_H

#include <stdbool.h>
#include <stdint.h>

#include <cm/counters.h>
#include <cm/mad.h>

#define CM_NEVER UINT64_MAX

/* Values of Linux, unless noted; times are exponents: 4.096 us * 2^n. */
#define CM_RESPONSE_TIMEOUT 20 /* 4.3 s */
#define CM_RETRIES          15
#define CM_MRA_TIMEOUT      24 /* 69 s */
#define CM_PACKET_LIFETIME  16 /* 0.27 s; Linux: 18 */

#define CM_SEED_LEN 16 /* bytes */

struct cm;
struct cm_conn;

/* The states of IBA figure 12-9 and of its passive counterpart, in the order of Linux's enum
 * ib_cm_state. */
enum cm_state {
	CM_IDLE,
	CM_LISTEN, /* not used: the owner keeps listeners */
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_MRA_REQ_SENT,
	CM_MRA_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_MRA_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD,
};

enum cm_event {
	CM_EVENT_REP,         /* mad: the REP */
	CM_EVENT_ESTABLISHED, /* mad: the RTU; NULL: the owner called cm_established */
	CM_EVENT_REJ,         /* mad: the REJ */
	CM_EVENT_REQ_ERROR,   /* the peer has not answered the REQ */
	CM_EVENT_REP_ERROR,   /* the peer has not answered the REP */
	CM_EVENT_DREQ_ERROR,  /* the peer has not answered the DREQ */
	CM_EVENT_DREQ,        /* mad: the DREQ */
	CM_EVENT_DREP,        /* mad: the DREP */
	CM_EVENT_TIMEWAIT_EXIT,
	CM_EVENT_SIDR_REP, /* mad: the SIDR_REP */
	CM_EVENT_SIDR_ERROR,
};

/* A path to a peer's QP1. */
struct cm_path {
	uint8_t sgid_index; /* for the owner; the manager only stores it */
	uint8_t sgid[16];   /* IPv4 as ::ffff:a.b.c.d */
	uint8_t dgid[16];
	uint16_t pkey;
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label;
	/*
	 * For a received message, set by the owner: the MAC address that the message came from. A
	 * refusal goes to that MAC, so that refusing needs no address resolution. A connection's
	 * messages go to the MAC that address resolution finds: so a sender that uses another
	 * host's address gets none of them.
	 */
	bool has_mac;
	uint8_t mac[6];
	/* The owner has learnt from address resolution that the sender's address has this MAC. */
	bool known;
	/* The sender is on this host, where quotas of programs apply instead of the limit per
	 * sender. */
	bool local;
};

/* Results of cm_ops.request. */
enum cm_verdict {
	CM_TAKE,
	CM_FORGET,             /* ignore the request, as if it were lost */
	CM_IGNORE_FROZEN,      /* ignore the request, and count it: the listener is frozen */
	CM_REJECT_NO_LISTENER, /* no listener for the service */
	CM_REJECT_CONSUMER,    /* the listener refuses this peer or type of queue pair */
};

struct cm_ops {
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
	/*
	 * A REQ or SIDR_REQ arrived. CM_TAKE: the owner takes the connection, and has set
	 * *conn_ctx.
	 */
	enum cm_verdict (*request)(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				   void **conn_ctx);
	void (*event)(void *conn_ctx, enum cm_event event, const struct cm_mad *mad);
};

/*
 * Creates the CM of a device; 0 or -ENOMEM. The seed determines communication IDs, transaction IDs
 * and the order of the tables. It must be random and secret: a peer that knows the seed can forge
 * messages for the connections of others.
 */
int cm_create(const struct cm_ops *ops, void *ctx, uint64_t ca_guid,
	      const uint8_t seed[CM_SEED_LEN], struct cm **cm);
/* Destroys the manager and all connections, without messages. */
void cm_destroy(struct cm *cm);
/* Processes a received MAD; `path` is the path to its sender, for the answer. */
void cm_input(struct cm *cm, uint64_t now, const struct cm_path *path,
	      const uint8_t bytes[CM_MAD_LEN]);
/* Runs timers that are due, CM_TICK_MAX at most: each one may send a message. If the owner's send
 * queue lacks room for CM_TICK_MAX messages, the owner calls the function later. */
#define CM_TICK_MAX 64
void cm_tick(struct cm *cm, uint64_t now);
/* When cm_tick has to be called next, as of now; CM_NEVER = not before another call. */
uint64_t cm_next_deadline(const struct cm *cm);
const uint64_t *cm_counters(const struct cm *cm);
/* Number of connections, including those that their owner has released. */
uint32_t cm_conns(const struct cm *cm);
/* Whether the manager has the connection that a received DREQ names, in another state than CM_IDLE.
 * cm_input answers a DREQ of an unknown connection, too. */
bool cm_knows_dreq(const struct cm *cm, const struct cm_path *path, const struct cm_pair *dreq);

/* Parameters of one side of a connection. */
struct cm_param {
	uint32_t qpn;
	uint32_t psn; /* PSN of the peer's first packet */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count; /* in a REQ only */
	uint8_t rnr_retry_count;
	uint8_t srq;
	struct cm_ece ece;
	const void *private_data;
	uint32_t private_len; /* bytes, at most the message's limit; the rest is filled with 0 */
};

struct cm_request {
	struct cm_path path;
	uint64_t service_id;
	uint8_t service;         /* enum cm_service */
	uint8_t mtu;             /* of the path, 1 = 256 to 5 = 4096 */
	uint8_t packet_lifetime; /* on the path, 4.096 us * 2^n, n up to 30 */
	struct cm_param param;
};

/* Makes a connection and sends its REQ. -EINVAL: too much private data; -ENOMEM. */
int cm_connect(struct cm *cm, uint64_t now, const struct cm_request *request, void *conn_ctx,
	       struct cm_conn **conn);
/* Answers a REQ with a REP. */
int cm_accept(struct cm_conn *conn, uint64_t now, const struct cm_param *param);
/* Answers a REP with a RTU. */
int cm_ready(struct cm_conn *conn);
/*
 * Sends a REJ. After a REQ or a REP has arrived, the connection goes to IDLE; after our REP, until
 * the RTU arrives, to TIMEWAIT. Before a REP has come, we do not know the peer's ID. Then the REJ
 * has the reason CM_REJ_TIMEOUT instead of `reason`, so that the peer looks for its request by our
 * GUID (IBA 12.6.7.2), and the connection goes to IDLE.
 */
int cm_reject(struct cm_conn *conn, uint64_t now, uint16_t reason, const void *private_data,
	      uint32_t private_len);
/* For an owner that has got data before the RTU (IBA 12.9.7.2): establishes the connection, and
 * calls cm_ops.event. -EISCONN: the connection is established already. */
int cm_established(struct cm_conn *conn);
/* In CM_ESTABLISHED: the next cm_tick sends a DREQ. In CM_DREQ_RCVD: sends the DREP at once, and
 * enters CM_TIMEWAIT. */
int cm_disconnect(struct cm_conn *conn, uint64_t now);

struct cm_sidr_request {
	struct cm_path path;
	uint64_t service_id;
	uint64_t timeout_ns; /* for each try */
	const void *private_data;
	uint32_t private_len;
};

struct cm_sidr_reply {
	uint8_t status; /* enum cm_sidr_status */
	uint32_t qpn;
	uint32_t qkey;
	const void *private_data;
	uint32_t private_len;
};

/* Makes a connection and sends its SIDR_REQ. -EINVAL: too much private data; -ENOMEM. */
int cm_sidr_resolve(struct cm *cm, uint64_t now, const struct cm_sidr_request *request,
		    void *conn_ctx, struct cm_conn **conn);
/* Answers a SIDR_REQ with a SIDR_REP, and ends the connection. */
int cm_sidr_answer(struct cm_conn *conn, const struct cm_sidr_reply *reply);

/*
 * The owner releases the connection and gets no more events. The manager sends the message that
 * ends the connection in its state (REJ, SIDR_REP, DREP or, by cm_tick, DREQ), and frees the
 * connection at the latest after TIMEWAIT.
 */
void cm_release(struct cm_conn *conn, uint64_t now);

enum cm_state cm_state(const struct cm_conn *conn);

/* Attributes for the queue pair of a connection, as far as messages have brought them. */
struct cm_channel {
	struct cm_path path;
	uint64_t service_id;
	uint32_t remote_qpn;
	uint32_t sq_psn;
	uint8_t service;
	uint8_t mtu;
	uint8_t responder_resources; /* READs and atomics of the peer that this side accepts */
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	/* Local ACK timeout, 4.096 us * 2^n. Before a REP has the peer's delay: twice the
	 * lifetime. */
	uint8_t ack_timeout;
};
const struct cm_channel *cm_channel(const struct cm_conn *conn);

/* A connection without pointers, for the manager of the next daemon, or of another host. */
struct cm_saved {
	struct cm_channel channel;
	uint64_t remote_guid;
	uint64_t tid;
	uint64_t timeout_ns;
	uint32_t local_id, remote_id;
	uint32_t local_qpn; /* QPN that a DREQ has to name; 0: any */
	uint16_t sent_attr;
	uint8_t state; /* enum cm_state */
	uint8_t max_retries;
	uint8_t by_peer;
	uint8_t sent[CM_MAD_LEN];
};
void cm_save(const struct cm_conn *conn, struct cm_saved *saved);
/*
 * Restores a saved connection, which has an owner. Its timeout and retries start anew; if it waits
 * for the answer to a DREQ, the next cm_tick sends the DREQ again. `frozen`: the connection is as
 * after cm_freeze, and the manager gives up no older connection for it. -EEXIST: another connection
 * has its ID; -EINVAL: invalid state or ID; -ENOMEM.
 */
int cm_restore(struct cm *cm, uint64_t now, const struct cm_saved *saved, bool frozen,
	       void *conn_ctx, struct cm_conn **conn);

/*
 * A frozen connection was saved and may go on elsewhere, so nothing changes it: its timer stands
 * still, and messages for it are dropped, as if the network had lost them. cm_release frees it
 * without a message to the peer; cm_disconnect returns -EINVAL.
 */
void cm_freeze(struct cm_conn *conn);
/* Ends cm_freeze, if the connection is frozen: it goes on as after cm_restore. */
void cm_thaw(struct cm_conn *conn, uint64_t now);

#endif
