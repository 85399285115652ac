/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that the owner of a connection calls. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conn.h"

#define LID_NONE 0xffff /* LID of an Ethernet port, as in Linux */

static void fill_path(struct cm_req *req, const struct cm_path *path)
{
	req->local_lid = LID_NONE;
	req->remote_lid = LID_NONE;
	memcpy(req->local_gid, path->sgid, sizeof(req->local_gid));
	memcpy(req->remote_gid, path->dgid, sizeof(req->remote_gid));
	req->flow_label = path->flow_label;
	req->traffic_class = path->traffic_class;
	req->hop_limit = path->hop_limit;
	req->sl = path->sl;
}

static void fill_req(struct cm_mad *mad, const struct cm_conn *conn,
		     const struct cm_request *request)
{
	const struct cm_param *p = &request->param;

	mad->tid = conn->tid;
	mad->ece = p->ece;
	mad->req = (struct cm_req){
		.local_id = conn->local_id,
		.service_id = request->service_id,
		.ca_guid = conn->cm->ca_guid,
		.qpn = p->qpn,
		.psn = p->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.remote_response = CM_RESPONSE_TIMEOUT,
		.local_response = CM_RESPONSE_TIMEOUT,
		.service = request->service,
		.flow_control = p->flow_control,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.max_cm_retries = CM_RETRIES,
		.ack_timeout = cm_ack_timeout(CM_ACK_DELAY, request->packet_lifetime),
		.mtu = request->mtu,
		.srq = p->srq,
		.pkey = request->path.pkey,
	};
	fill_path(&mad->req, &request->path);
}

static void set_owner(struct cm_conn *conn, void *ctx)
{
	conn->ctx = ctx;
	conn->owned = true;
	conn->tid = cm_draw(conn->cm);
	conn->max_retries = CM_RETRIES;
}

int cm_connect(struct cm *cm, uint64_t now, const struct cm_request *request, void *conn_ctx,
	       struct cm_conn **out)
{
	const struct cm_param *p = &request->param;
	struct cm_mad mad = {.attr = CM_REQ};
	struct cm_conn *conn;

	if (cm_set_private(&mad, p->private_data, p->private_len))
		return -EINVAL;
	conn = cm_conn_new(cm, &request->path);
	if (!conn)
		return -ENOMEM;
	set_owner(conn, conn_ctx);
	conn->local_qpn = p->qpn;
	conn->timeout_ns = 2 * cm_time_ns(CM_PACKET_LIFETIME) + cm_time_ns(CM_RESPONSE_TIMEOUT);
	conn->channel.service_id = request->service_id;
	conn->channel.service = request->service;
	conn->channel.mtu = request->mtu;
	conn->channel.responder_resources = p->responder_resources;
	conn->channel.initiator_depth = p->initiator_depth;
	conn->channel.retry_count = p->retry_count;
	conn->channel.rnr_retry_count = p->rnr_retry_count;
	conn->channel.ack_timeout = request->packet_lifetime + 1;
	fill_req(&mad, conn, request);
	conn->state = CM_REQ_SENT;
	*out = conn;
	cm_post(conn, &mad);
	cm_await(conn, now);
	return 0;
}

int cm_accept(struct cm_conn *conn, uint64_t now, const struct cm_param *p)
{
	struct cm_mad mad = {.attr = CM_REP, .tid = conn->tid, .ece = p->ece};

	if (!CM_IN(conn, CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT)) ||
	    cm_set_private(&mad, p->private_data, p->private_len))
		return -EINVAL;
	conn->local_qpn = p->qpn;
	conn->channel.responder_resources = p->responder_resources;
	conn->channel.initiator_depth = p->initiator_depth;
	mad.rep = (struct cm_rep){
		.local_id = conn->local_id,
		.remote_id = conn->remote_id,
		.ca_guid = conn->cm->ca_guid,
		.qpn = p->qpn,
		.psn = p->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.ack_delay = CM_ACK_DELAY,
		.flow_control = p->flow_control,
		.rnr_retry_count = p->rnr_retry_count,
		.srq = p->srq,
	};
	conn->state = CM_REP_SENT;
	cm_enter_unconfirmed(conn, now);
	cm_post(conn, &mad);
	cm_await(conn, now);
	return 0;
}

int cm_ready(struct cm_conn *conn)
{
	struct cm_mad mad = cm_make_pair(conn, CM_RTU);

	if (!CM_IN(conn, CM_S(REP_RCVD) | CM_S(MRA_REP_SENT)))
		return -EINVAL;
	conn->state = CM_ESTABLISHED;
	cm_post(conn, &mad);
	return 0;
}

static enum cm_about rejected_message(const struct cm_conn *conn)
{
	if (CM_IN(conn, CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT)))
		return CM_ABOUT_REQ;
	if (CM_IN(conn, CM_S(REP_RCVD) | CM_S(MRA_REP_SENT)))
		return CM_ABOUT_REP;
	return CM_ABOUT_OTHER;
}

static void send_rej(struct cm_conn *conn, uint16_t reason, struct cm_mad *mad)
{
	mad->tid = conn->tid;
	mad->rej.local_id = conn->local_id;
	mad->rej.remote_id = conn->remote_id;
	mad->rej.about = (uint8_t)rejected_message(conn);
	mad->rej.reason = reason;
	cm_count(conn->cm, CM_COUNT_REJECTED);
	cm_post(conn, mad);
}

/* Withdraws our own REQ, which has no REP yet, by a REJ, and ends the connection. The peer knows
 * the request only by our GUID and ID. `mad` may have private data. */
static void withdraw_req(struct cm_conn *conn, struct cm_mad *mad)
{
	uint64_t guid = htobe64(conn->cm->ca_guid);

	mad->rej.ari_len = sizeof(guid);
	memcpy(mad->rej.ari, &guid, sizeof(guid));
	send_rej(conn, CM_REJ_TIMEOUT, mad);
	cm_enter_idle(conn);
}

int cm_reject(struct cm_conn *conn, uint64_t now, uint16_t reason, const void *private_data,
	      uint32_t private_len)
{
	struct cm_mad mad = {.attr = CM_REJ};

	if (cm_set_private(&mad, private_data, private_len))
		return -EINVAL;
	if (CM_IN(conn, CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD))) {
		withdraw_req(conn, &mad);
		return 0;
	}
	if (CM_IN(conn,
		  CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT) | CM_S(REP_RCVD) | CM_S(MRA_REP_SENT))) {
		send_rej(conn, reason, &mad);
		cm_enter_idle(conn);
		return 0;
	}
	if (!CM_IN(conn, CM_S(REP_SENT) | CM_S(MRA_REP_RCVD)))
		return -EINVAL;
	send_rej(conn, reason, &mad);
	cm_enter_timewait(conn, now);
	return 0;
}

int cm_established(struct cm_conn *conn)
{
	if (CM_IN(conn, CM_S(ESTABLISHED)))
		return -EISCONN;
	if (!CM_IN(conn, CM_S(REP_SENT) | CM_S(MRA_REP_RCVD)))
		return -EINVAL;
	cm_enter_established(conn);
	cm_tell(conn, CM_EVENT_ESTABLISHED, NULL);
	return 0;
}

int cm_disconnect(struct cm_conn *conn, uint64_t now)
{
	struct cm_mad mad;

	if (conn->frozen)
		return -EINVAL;
	switch (conn->state) {
	case CM_ESTABLISHED:
		conn->tid = cm_draw(conn->cm);
		mad = cm_make_pair(conn, CM_DREQ);
		conn->state = CM_DREQ_SENT;
		cm_post_by_tick(conn, now, &mad);
		return 0;
	case CM_DREQ_RCVD:
		mad = cm_make_pair(conn, CM_DREP);
		cm_post(conn, &mad);
		cm_enter_timewait(conn, now);
		return 0;
	default: return -EINVAL;
	}
}

void cm_release(struct cm_conn *conn, uint64_t now)
{
	const struct cm_sidr_reply refusal = {.status = CM_SIDR_REJECT};
	struct cm_path *path = &conn->channel.path;
	const uint8_t no_mac[sizeof(path->mac)] = {0};
	struct cm *cm = conn->cm;

	if (conn->frozen) {
		cm_conn_free(conn);
		return;
	}
	conn->owned = false;
	cm_enter_released(conn);
	/* As a REJ without a listener, this refusal goes to the sender's MAC, if that is known: so
	 * the owner need not resolve the source addresses of many requests. */
	if (CM_IN(conn, CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT) | CM_S(SIDR_REQ_RCVD)))
		path->has_mac = memcmp(path->mac, no_mac, sizeof(no_mac)) != 0;
	switch (conn->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_MRA_REP_RCVD: cm_reject(conn, now, CM_REJ_CONSUMER, NULL, 0); break;
	case CM_ESTABLISHED:
	case CM_DREQ_RCVD: cm_disconnect(conn, now); break;
	case CM_SIDR_REQ_RCVD: cm_sidr_answer(conn, &refusal); break;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT: break; /* the timer ends the connection */
	default: cm_conn_free(conn); break;
	}
	cm_drop_released(cm);
}
