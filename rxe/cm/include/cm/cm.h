/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The communication manager (IBA volume 1, chapter 12): connections, and the
 * resolution of service IDs for datagrams.
 *
 * Sans-IO: messages and the time come in, messages and events go out through the
 * callbacks. Time is in nanoseconds from any fixed point and must not go back.
 * One thread at a time. Callbacks must not call back. Functions that return int
 * give 0 or a negative errno value: -EINVAL where the state or an argument does
 * not allow it, and nothing has changed.
 */
#ifndef URXE_CM_CM_H
#define URXE_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cm/counters.h>
#include <cm/mad.h>

#define CM_NEVER UINT64_MAX

/* What Linux uses, too (times as exponents of 4.096 us). */
#define CM_RESPONSE_TIMEOUT 20 /* 4.3 s */
#define CM_RETRIES          15
#define CM_MRA_TIMEOUT      24 /* 69 s */
#define CM_PACKET_LIFETIME  16 /* 0.27 s */

struct cm;
struct cm_conn;

/* Figure 12-9 and its passive counterpart; the order is Linux's enum ib_cm_state. */
enum cm_state {
	CM_IDLE,
	CM_LISTEN, /* not used: listeners are the owner's */
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
	CM_EVENT_ESTABLISHED, /* mad: the RTU; NULL: cm_established was called */
	CM_EVENT_REJ,         /* mad: the REJ */
	CM_EVENT_REQ_ERROR,   /* nobody answers the REQ, */
	CM_EVENT_REP_ERROR,   /* the REP, */
	CM_EVENT_DREQ_ERROR,  /* the DREQ */
	CM_EVENT_DREQ,        /* mad: the DREQ */
	CM_EVENT_DREP,        /* mad: the DREP */
	CM_EVENT_TIMEWAIT_EXIT,
	CM_EVENT_SIDR_REP, /* mad: the SIDR_REP */
	CM_EVENT_SIDR_ERROR,
};

/* A way to a peer's QP1. */
struct cm_path {
	uint8_t sgid_index; /* the owner's business */
	uint8_t sgid[16];   /* IPv4 as ::ffff:a.b.c.d */
	uint8_t dgid[16];
	uint16_t pkey;
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label;
};

/* What cm_ops.request says. */
enum cm_verdict {
	CM_TAKE,
	CM_FORGET, /* as if it had been lost */
	CM_REFUSE, /* nobody listens to that service */
	CM_DENY,   /* somebody does, but not to this peer or this type of queue pair */
};

struct cm_ops {
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
	/*
	 * A REQ or SIDR_REQ has come. CM_TAKE: the connection is the owner's, who has set
	 * *conn_ctx.
	 */
	enum cm_verdict (*request)(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				   void **conn_ctx);
	void (*event)(void *conn_ctx, enum cm_event event, const struct cm_mad *mad);
};

/* `seed` is of communication IDs: not one that a predecessor at this address had. */
int cm_create(const struct cm_ops *ops, void *ctx, uint64_t ca_guid, uint64_t seed, struct cm **cm);
/* With all connections, silently. */
void cm_destroy(struct cm *cm);
/* Takes a MAD that came by a path, as seen from here. */
void cm_input(struct cm *cm, uint64_t now, const struct cm_path *path,
	      const uint8_t bytes[CM_MAD_LEN]);
/* Does what is due. */
void cm_tick(struct cm *cm, uint64_t now);
/* When cm_tick has to be called; CM_NEVER = not before something else. */
uint64_t cm_next_deadline(const struct cm *cm);
const uint64_t *cm_counters(const struct cm *cm);
/* Connections that there are, also those that nobody owns any more. */
uint32_t cm_conns(const struct cm *cm);

/* One side's part in a connection. */
struct cm_param {
	uint32_t qpn;
	uint32_t psn; /* that the peer's first packet will have */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count; /* REQ only */
	uint8_t rnr_retry_count;
	uint8_t srq;
	const void *private_data;
	uint32_t private_len; /* at most the message's; what is left is 0 */
};

struct cm_request {
	struct cm_path path;
	uint64_t service_id;
	uint8_t service; /* enum cm_service */
	uint8_t mtu;     /* of the path, 1 = 256 to 5 = 4096 */
	struct cm_param param;
};

/* Sends a REQ. Also -ENOMEM. */
int cm_connect(struct cm *cm, uint64_t now, const struct cm_request *request, void *conn_ctx,
	       struct cm_conn **conn);
/* Answers a REQ with a REP. */
int cm_accept(struct cm_conn *conn, uint64_t now, const struct cm_param *param);
/* Answers a REP with a RTU. */
int cm_ready(struct cm_conn *conn);
/* Answers a REQ or REP with a REJ. */
int cm_reject(struct cm_conn *conn, uint64_t now, uint16_t reason, const void *private_data,
	      uint32_t private_len);
/* Data has come before the RTU (IBA 12.9.7.2): the connection stands. Also -EISCONN: it did. */
int cm_established(struct cm_conn *conn);
/* Sends a DREQ, or answers one with a DREP. */
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

/* Sends a SIDR_REQ. Also -ENOMEM. */
int cm_sidr_resolve(struct cm *cm, uint64_t now, const struct cm_sidr_request *request,
		    void *conn_ctx, struct cm_conn **conn);
/* Answers a SIDR_REQ. */
int cm_sidr_answer(struct cm_conn *conn, const struct cm_sidr_reply *reply);

/*
 * The owner lets go: no more events. Who waits for an answer gets a REJ, who is connected
 * a DREQ, as often as it takes; then the connection is gone.
 */
void cm_release(struct cm_conn *conn, uint64_t now);

enum cm_state cm_state(const struct cm_conn *conn);
uint32_t cm_local_id(const struct cm_conn *conn);

/* What the queue pair of a connection is to be, as far as the messages so far say. */
struct cm_channel {
	struct cm_path path;
	uint64_t service_id;
	uint32_t remote_qpn;
	uint32_t rq_psn, sq_psn;
	uint8_t service;
	uint8_t mtu;
	uint8_t responder_resources; /* of this side */
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t ack_timeout;
};
const struct cm_channel *cm_channel(const struct cm_conn *conn);

/* A connection without pointers, for the manager that comes after this one. */
struct cm_saved {
	struct cm_channel channel;
	uint64_t remote_guid;
	uint64_t tid;
	uint64_t timeout_ns;
	uint32_t local_id, remote_id;
	uint32_t local_qpn;
	uint16_t sent_attr;
	uint8_t state; /* enum cm_state */
	uint8_t max_retries;
	uint8_t by_peer;
	uint8_t sent[CM_MAD_LEN];
};
void cm_save(const struct cm_conn *conn, struct cm_saved *saved);
/*
 * Goes on where it was, with an owner; what it waits for has all its time and tries again.
 * -ENOMEM, also where there is one with its ID; -EINVAL: there is no such state.
 */
int cm_restore(struct cm *cm, uint64_t now, const struct cm_saved *saved, void *conn_ctx,
	       struct cm_conn **conn);

#endif
