/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Service ID resolution (IBA 12.11): the queue pair that takes datagrams for a service. */
#include <errno.h>
#include <stddef.h>

#include "conn.h"

int cm_sidr_resolve(struct cm *cm, uint64_t now, const struct cm_sidr_request *request,
		    void *conn_ctx, struct cm_conn **out)
{
	struct cm_mad mad = {.attr = CM_SIDR_REQ};
	struct cm_conn *conn;

	if (cm_set_private(&mad, request->private_data, request->private_len))
		return -EINVAL;
	conn = cm_conn_new(cm, &request->path);
	if (!conn)
		return -ENOMEM;
	conn->ctx = conn_ctx;
	conn->owned = true;
	conn->tid = mad.tid = cm_draw(cm);
	conn->timeout_ns = request->timeout_ns;
	conn->max_retries = CM_RETRIES;
	conn->channel.service_id = request->service_id;
	mad.sidr_req = (struct cm_sidr_req){
		.request_id = conn->local_id,
		.pkey = request->path.pkey,
		.service_id = request->service_id,
	};
	conn->state = CM_SIDR_REQ_SENT;
	*out = conn;
	cm_post(conn, &mad);
	cm_await(conn, now);
	return 0;
}

int cm_sidr_answer(struct cm_conn *conn, const struct cm_sidr_reply *reply)
{
	struct cm_mad mad = {.attr = CM_SIDR_REP, .tid = conn->tid};

	if (!CM_IN(conn, CM_S(SIDR_REQ_RCVD)) ||
	    cm_set_private(&mad, reply->private_data, reply->private_len))
		return -EINVAL;
	mad.sidr_rep = (struct cm_sidr_rep){
		.request_id = conn->remote_id,
		.status = reply->status,
		.service_id = conn->channel.service_id,
	};
	if (reply->status == CM_SIDR_OK) {
		mad.sidr_rep.qpn = reply->qpn;
		mad.sidr_rep.qkey = reply->qkey;
	} else {
		cm_count(conn->cm, CM_COUNT_REJECTED);
	}
	cm_post(conn, &mad);
	cm_enter_idle(conn);
	return 0;
}

/* Whether an earlier request with this ID still waits for its answer. */
static bool is_repeated(const struct cm *cm, const struct cm_path *path, uint32_t request_id)
{
	const struct cm_conn *conn = cm_find_peer(cm, path, cm_path_key(path), request_id);

	return conn && CM_IN(conn, CM_S(SIDR_REQ_RCVD));
}

void cm_on_sidr_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad)
{
	struct cm_sidr_reply refusal = {.status = CM_SIDR_UNSUPPORTED};
	struct cm_conn *conn;

	if (is_repeated(cm, path, mad->sidr_req.request_id)) {
		cm_count(cm, CM_COUNT_DUPLICATE);
		return;
	}
	if (cm_is_crowded(cm, path, mad->sidr_req.service_id))
		return;
	conn = cm_conn_new(cm, path);
	if (!conn) {
		cm_count(cm, CM_COUNT_NO_ROOM);
		return;
	}
	conn->state = CM_SIDR_REQ_RCVD;
	conn->tid = mad->tid;
	conn->remote_id = mad->sidr_req.request_id;
	conn->remote_guid = cm_path_key(path);
	conn->channel.service_id = mad->sidr_req.service_id;
	conn->channel.path.pkey = mad->sidr_req.pkey;
	cm_know_peer(conn);
	cm_enter_half_open(conn);
	switch (cm->ops->request(cm->ctx, conn, mad, &conn->ctx)) {
	case CM_TAKE: conn->owned = true; return;
	case CM_FORGET:
		cm_count(cm, CM_COUNT_NO_ROOM);
		cm_conn_free(conn);
		return;
	case CM_IGNORE_FROZEN:
		cm_count(cm, CM_COUNT_FROZEN);
		cm_conn_free(conn);
		return;
	case CM_REJECT_CONSUMER: refusal.status = CM_SIDR_REJECT; break;
	case CM_REJECT_NO_LISTENER: break;
	}
	/* A refusal goes to the sender's MAC, as a REJ without a connection does. */
	conn->channel.path.has_mac = path->has_mac;
	cm_sidr_answer(conn, &refusal);
}

void cm_on_sidr_rep(struct cm *cm, const struct cm_path *path, const struct cm_mad *mad)
{
	struct cm_conn *conn = cm_find_from(cm, path, mad->sidr_rep.request_id);

	if (!conn || !CM_IN(conn, CM_S(SIDR_REQ_SENT))) {
		cm_count(cm, conn ? CM_COUNT_UNEXPECTED : CM_COUNT_STRAY);
		return;
	}
	if (!cm_is_answer(conn, mad))
		return;
	cm_tell(conn, CM_EVENT_SIDR_REP, mad);
	cm_enter_idle(conn);
}
