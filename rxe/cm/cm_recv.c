/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processing of the peer's messages (IBA 12.9.6 to 12.9.8). */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conn.h"

/* --- REQ */

/* Refuses a REQ by a REJ, without a connection. */
static void refuse_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *req,
		       uint16_t reason)
{
	struct cm_mad mad = {
		.attr = CM_REJ,
		.tid = req->tid,
		.rej = {.remote_id = req->req.local_id, .about = CM_ABOUT_REQ, .reason = reason},
	};
	uint8_t bytes[CM_MAD_LEN];

	cm_count(cm, CM_COUNT_REJECTED);
	cm_count(cm, CM_COUNT_OUT);
	cm_mad_build(&mad, bytes);
	cm->ops->send(cm->ctx, path, bytes);
}

/* Answers a repeated REQ with an MRA if the owner has not answered yet. The REP needs no repetition
 * here: its timer repeats it. */
static void answer_repeated_req(struct cm_conn *conn)
{
	struct cm_mad mra;

	cm_count(conn->cm, CM_COUNT_DUPLICATE);
	if (!CM_IN(conn, CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT)))
		return;
	mra = cm_make_mra(conn, CM_ABOUT_REQ);
	conn->state = CM_MRA_REQ_SENT;
	cm_post(conn, &mra);
}

static void take_req(struct cm_conn *conn, const struct cm_mad *mad)
{
	const struct cm_req *req = &mad->req;

	conn->state = CM_REQ_RCVD;
	conn->tid = mad->tid;
	conn->remote_id = req->local_id;
	conn->remote_guid = req->ca_guid;
	conn->timeout_ns = cm_time_ns(cm_bounded(req->local_response));
	conn->max_retries = req->max_cm_retries;
	conn->channel.service_id = req->service_id;
	conn->channel.path.pkey = req->pkey;
	conn->channel.path.sl = req->sl;
	conn->channel.path.traffic_class = req->traffic_class;
	conn->channel.path.hop_limit = req->hop_limit;
	conn->channel.path.flow_label = req->flow_label;
	conn->channel.remote_qpn = req->qpn;
	conn->channel.sq_psn = req->psn;
	conn->channel.service = req->service;
	conn->channel.mtu = req->mtu;
	conn->channel.responder_resources = req->initiator_depth;
	conn->channel.initiator_depth = req->responder_resources;
	conn->channel.retry_count = req->retry_count;
	conn->channel.rnr_retry_count = req->rnr_retry_count;
	/* The REQ's ACK timeout includes the ACK delay of the sender's device. */
	conn->channel.ack_timeout = req->ack_timeout ? req->ack_timeout : CM_ACK_DELAY;
	cm_know_peer(conn);
	cm_enter_half_open(conn);
}

static void on_req(struct cm *cm, uint64_t now, const struct cm_path *path,
		   const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_peer(cm, path, mad->req.ca_guid, mad->req.local_id);

	if (conn) {
		answer_repeated_req(conn);
		return;
	}
	if (mad->req.service != CM_SERVICE_RC && mad->req.service != CM_SERVICE_UC) {
		refuse_req(cm, path, mad, CM_REJ_INVALID_SERVICE_TYPE);
		return;
	}
	if (mad->req.mtu < CM_MTU_MIN || mad->req.mtu > CM_MTU_MAX) {
		refuse_req(cm, path, mad, CM_REJ_INVALID_MTU);
		return;
	}
	conn = cm_find_qpn(cm, path, mad->req.ca_guid, mad->req.qpn);
	if (conn) {
		/*
		 * The sender or this side has lost the state of a connection (IBA 12.9.8.3.1). A
		 * sender that only claims the peer's address must not end the connection, so its
		 * MAC must be known.
		 */
		cm_count(cm, CM_COUNT_STALE);
		refuse_req(cm, path, mad, CM_REJ_STALE);
		if (path->known && CM_IN(conn, CM_S(ESTABLISHED)))
			cm_disconnect(conn, now);
		return;
	}
	if (cm_is_crowded(cm, path, mad->req.service_id))
		return;
	conn = cm_conn_new(cm, path);
	if (!conn) {
		cm_count(cm, CM_COUNT_NO_ROOM);
		return;
	}
	take_req(conn, mad);
	switch (cm->ops->request(cm->ctx, conn, mad, &conn->ctx)) {
	case CM_TAKE: conn->owned = true; return;
	case CM_FORGET: cm_count(cm, CM_COUNT_NO_ROOM); break;
	case CM_IGNORE_FROZEN: cm_count(cm, CM_COUNT_FROZEN); break;
	case CM_REJECT_NO_LISTENER: refuse_req(cm, path, mad, CM_REJ_INVALID_SERVICE_ID); break;
	case CM_REJECT_CONSUMER: refuse_req(cm, path, mad, CM_REJ_CONSUMER); break;
	}
	cm_conn_free(conn);
}

/* --- MRA */

static void on_mra(struct cm *cm, uint64_t now, const struct cm_path *path,
		   const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_from(cm, path, mad->mra.remote_id);
	uint64_t due;

	if (!conn) {
		cm_count(cm, CM_COUNT_STRAY);
		return;
	}
	if (!cm_is_answer(conn, mad))
		return;
	if (mad->mra.about == CM_ABOUT_REQ && CM_IN(conn, CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD)))
		conn->state = CM_MRA_REQ_RCVD;
	else if (mad->mra.about == CM_ABOUT_REP && CM_IN(conn, CM_S(REP_SENT) | CM_S(MRA_REP_RCVD)))
		conn->state = CM_MRA_REP_RCVD;
	else {
		cm_count(cm, CM_COUNT_UNEXPECTED);
		return;
	}
	due = now + cm_time_ns(mad->mra.timeout) + cm_time_ns(conn->channel.ack_timeout);
	heap_set(&cm->timers, &conn->timer, due);
}

/* --- REP */

static void answer_repeated_rep(struct cm_conn *conn)
{
	struct cm_mad mra;

	if (CM_IN(conn, CM_S(ESTABLISHED)) && conn->sent_attr == CM_RTU) {
		cm_count(conn->cm, CM_COUNT_DUPLICATE);
		cm_post_again(conn);
	} else if (CM_IN(conn, CM_S(REP_RCVD) | CM_S(MRA_REP_SENT))) {
		cm_count(conn->cm, CM_COUNT_DUPLICATE);
		mra = cm_make_mra(conn, CM_ABOUT_REP);
		conn->state = CM_MRA_REP_SENT;
		cm_post_aside(conn, &mra);
	} else {
		cm_count(conn->cm, CM_COUNT_UNEXPECTED);
	}
}

static void refuse_rep(struct cm_conn *conn, const struct cm_rep *rep)
{
	struct cm_mad mad = {
		.attr = CM_REJ,
		.tid = conn->tid,
		.rej = {.local_id = conn->local_id,
			.remote_id = rep->local_id,
			.about = CM_ABOUT_REP,
			.reason = CM_REJ_STALE},
	};

	cm_count(conn->cm, CM_COUNT_STALE);
	cm_count(conn->cm, CM_COUNT_REJECTED);
	cm_post_aside(conn, &mad);
}

static void on_rep(struct cm *cm, uint64_t now, const struct cm_path *path,
		   const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_from(cm, path, mad->rep.remote_id), *other;
	const struct cm_rep *rep = &mad->rep;

	if (!conn) {
		cm_count(cm, CM_COUNT_STRAY);
		return;
	}
	if (!cm_is_answer(conn, mad))
		return;
	if (!CM_IN(conn, CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD))) {
		answer_repeated_rep(conn);
		return;
	}
	other = cm_find_qpn(cm, path, rep->ca_guid, rep->qpn);
	if (other) {
		refuse_rep(conn, rep);
		if (path->known && CM_IN(other, CM_S(ESTABLISHED)))
			cm_disconnect(other, now);
		return;
	}
	cm_await_no_more(conn);
	conn->state = CM_REP_RCVD;
	conn->remote_id = rep->local_id;
	conn->remote_guid = rep->ca_guid;
	conn->channel.remote_qpn = rep->qpn;
	conn->channel.sq_psn = rep->psn;
	conn->channel.responder_resources = rep->initiator_depth;
	conn->channel.initiator_depth = rep->responder_resources;
	conn->channel.rnr_retry_count = rep->rnr_retry_count;
	conn->channel.ack_timeout = cm_ack_timeout(rep->ack_delay, conn->channel.ack_timeout - 1);
	cm_know_peer(conn);
	cm_tell(conn, CM_EVENT_REP, mad);
}

/* --- RTU */

static void on_rtu(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_pair(cm, path, mad->pair.remote_id, mad->pair.local_id);

	if (!conn) {
		cm_count(cm, CM_COUNT_STRAY);
		return;
	}
	if (!CM_IN(conn, CM_S(REP_SENT) | CM_S(MRA_REP_RCVD))) {
		cm_count(cm,
			 CM_IN(conn, CM_S(ESTABLISHED)) ? CM_COUNT_DUPLICATE : CM_COUNT_UNEXPECTED);
		return;
	}
	cm_enter_established(conn);
	cm_tell(conn, CM_EVENT_ESTABLISHED, mad);
}

/* --- REJ */

/* The connection whose REQ the peer refuses; NULL: none. A peer that refuses a REQ may have no ID
 * for the connection; the REJs of other messages have the IDs of both sides. */
static struct cm_conn *find_refused(const struct cm *cm, const struct cm_path *path,
				    const struct cm_rej *rej)
{
	struct cm_conn *conn = cm_find_from(cm, path, rej->remote_id);

	return conn && CM_IN(conn, CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD)) ? conn : NULL;
}

/* The connection that a REJ is about; NULL: none. A peer that withdraws its REQ before our answer
 * does not know our ID, so its REJ has its GUID. */
static struct cm_conn *find_rejected(const struct cm *cm, const struct cm_path *path,
				     const struct cm_rej *rej)
{
	uint64_t guid;

	if (rej->reason == CM_REJ_TIMEOUT) {
		memcpy(&guid, rej->ari, sizeof(guid));
		return cm_find_peer(cm, path, be64toh(guid), rej->local_id);
	}
	if (rej->about == CM_ABOUT_REQ)
		return find_refused(cm, path, rej);
	return cm_find_pair(cm, path, rej->remote_id, rej->local_id);
}

/* Whether the REJ can be the peer's. A REJ has the transaction ID of the REQ or REP that it
 * refuses. In CM_DREQ_SENT, conn->tid is that of the DREQ instead: then both communication IDs,
 * which are random, have to match. */
static bool is_rejection(const struct cm_conn *conn, const struct cm_mad *mad)
{
	return CM_IN(conn, CM_S(DREQ_SENT)) ? mad->rej.remote_id == conn->local_id
					    : cm_is_answer(conn, mad);
}

#define REJ_ENDS                                                                     \
	(CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD) | CM_S(REP_SENT) | CM_S(MRA_REP_RCVD) | \
	 CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT))
/* States from which a REJ leads to TIMEWAIT. ESTABLISHED: the peer ended a connection whose RTU it
 * has not received. */
#define REJ_DELAYS (CM_S(DREQ_SENT) | CM_S(REP_RCVD) | CM_S(MRA_REP_SENT) | CM_S(ESTABLISHED))

static void on_rej(struct cm *cm, uint64_t now, const struct cm_path *path,
		   const struct cm_mad *mad)
{
	struct cm_conn *conn = find_rejected(cm, path, &mad->rej);
	bool wait;

	if (!conn) {
		cm_count(cm, CM_COUNT_STRAY);
		return;
	}
	if (!CM_IN(conn, REJ_ENDS | REJ_DELAYS)) {
		cm_count(cm, CM_COUNT_UNEXPECTED);
		return;
	}
	if (!is_rejection(conn, mad))
		return;
	wait = CM_IN(conn, REJ_DELAYS) || mad->rej.reason == CM_REJ_STALE;
	cm_tell(conn, CM_EVENT_REJ, mad);
	if (wait)
		cm_enter_timewait(conn, now);
	else
		cm_enter_idle(conn);
}

/* --- DREQ, DREP */

/* Answers the DREQ of a connection that has ended here: the peer has not got the first DREP. */
static void answer_stray_dreq(struct cm *cm, const struct cm_path *path, const struct cm_mad *dreq)
{
	struct cm_mad mad = {
		.attr = CM_DREP,
		.tid = dreq->tid,
		.pair = {.local_id = dreq->pair.remote_id, .remote_id = dreq->pair.local_id},
	};
	uint8_t bytes[CM_MAD_LEN];

	cm_count(cm, CM_COUNT_STRAY);
	cm_count(cm, CM_COUNT_OUT);
	cm_mad_build(&mad, bytes);
	cm->ops->send(cm->ctx, path, bytes);
}

static void answer_dreq(struct cm_conn *conn, uint64_t now)
{
	struct cm_mad mad = cm_make_pair(conn, CM_DREP);

	cm_post(conn, &mad);
	cm_enter_timewait(conn, now);
}

/* The connection of a DREQ; NULL: no connection, or one that has ended. */
static struct cm_conn *find_of_dreq(const struct cm *cm, const struct cm_path *path,
				    const struct cm_pair *dreq)
{
	struct cm_conn *conn = cm_find_pair(cm, path, dreq->remote_id, dreq->local_id);

	return conn && !CM_IN(conn, CM_S(IDLE)) ? conn : NULL;
}

bool cm_knows_dreq(const struct cm *cm, const struct cm_path *path, const struct cm_pair *dreq)
{
	return find_of_dreq(cm, path, dreq);
}

static void on_dreq(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_mad *mad)
{
	struct cm_conn *conn = find_of_dreq(cm, path, &mad->pair);

	if (!conn) {
		answer_stray_dreq(cm, path, mad);
		return;
	}
	if (conn->local_qpn && conn->local_qpn != mad->pair.remote_qpn) {
		cm_count(cm, CM_COUNT_UNEXPECTED);
		return;
	}
	switch (conn->state) {
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
	case CM_ESTABLISHED:
		cm_enter_established(conn);
		conn->state = CM_DREQ_RCVD;
		conn->tid = mad->tid;
		cm_tell(conn, CM_EVENT_DREQ, mad);
		return;
	case CM_DREQ_SENT: /* both sides sent a DREQ, and each answers that of the other */
		conn->tid = mad->tid;
		cm_tell(conn, CM_EVENT_DREQ, mad);
		answer_dreq(conn, now);
		return;
	case CM_TIMEWAIT:
		cm_count(cm, CM_COUNT_DUPLICATE);
		conn->tid = mad->tid;
		answer_dreq(conn, now);
		return;
	case CM_DREQ_RCVD: cm_count(cm, CM_COUNT_DUPLICATE); return;
	default: cm_count(cm, CM_COUNT_UNEXPECTED); return;
	}
}

static void on_drep(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_pair(cm, path, mad->pair.remote_id, mad->pair.local_id);

	if (!conn) {
		cm_count(cm, CM_COUNT_STRAY);
		return;
	}
	if (!CM_IN(conn, CM_S(DREQ_SENT) | CM_S(DREQ_RCVD))) {
		cm_count(cm,
			 CM_IN(conn, CM_S(TIMEWAIT)) ? CM_COUNT_DUPLICATE : CM_COUNT_UNEXPECTED);
		return;
	}
	if (!cm_is_answer(conn, mad))
		return;
	cm_tell(conn, CM_EVENT_DREP, mad);
	cm_enter_timewait(conn, now);
}

/* --- Dispatch */

void cm_input(struct cm *cm, uint64_t now, const struct cm_path *path,
	      const uint8_t bytes[CM_MAD_LEN])
{
	struct cm_mad mad;

	switch (cm_mad_parse(&mad, bytes)) {
	case 0: break;
	case -EOPNOTSUPP: cm_count(cm, CM_COUNT_UNSUPPORTED); return;
	default: cm_count(cm, CM_COUNT_MALFORMED); return;
	}
	cm_count(cm, CM_COUNT_IN);
	if (cm_is_for_frozen(cm, path, &mad)) {
		cm_count(cm, CM_COUNT_FROZEN);
		return;
	}
	switch ((enum cm_attr)mad.attr) {
	case CM_REQ: on_req(cm, now, path, &mad); break;
	case CM_MRA: on_mra(cm, now, path, &mad); break;
	case CM_REJ: on_rej(cm, now, path, &mad); break;
	case CM_REP: on_rep(cm, now, path, &mad); break;
	case CM_RTU: on_rtu(cm, path, &mad); break;
	case CM_DREQ: on_dreq(cm, now, path, &mad); break;
	case CM_DREP: on_drep(cm, now, path, &mad); break;
	case CM_SIDR_REQ: cm_on_sidr_req(cm, path, &mad); break;
	case CM_SIDR_REP: cm_on_sidr_rep(cm, path, &mad); break;
	case CM_LAP:
	case CM_APR: break; /* cm_mad_parse has refused these */
	}
}
