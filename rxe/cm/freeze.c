/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that stand still while a program is saved, and then go on (cm_freeze in cm.h). */
#include <endian.h>
#include <string.h>

#include "conn.h"

#define HALF_OPEN                                                                    \
	(CM_S(REQ_RCVD) | CM_S(MRA_REQ_SENT) | CM_S(REP_SENT) | CM_S(MRA_REP_RCVD) | \
	 CM_S(SIDR_REQ_RCVD))
#define AWAITS                                                                       \
	(CM_S(REQ_SENT) | CM_S(MRA_REQ_RCVD) | CM_S(REP_SENT) | CM_S(MRA_REP_RCVD) | \
	 CM_S(SIDR_REQ_SENT))

/* The remaining time is unknown, so the timeout starts anew. The next cm_tick sends a DREQ again:
 * it may not have been sent before, or its answer was lost while the connection was frozen. */
void cm_go_on(struct cm_conn *conn, uint64_t now)
{
	if (CM_IN(conn, HALF_OPEN))
		cm_enter_half_open(conn);
	if (CM_IN(conn, CM_S(REP_SENT) | CM_S(MRA_REP_RCVD)))
		cm_enter_unconfirmed(conn, now);
	if (CM_IN(conn, AWAITS))
		cm_await(conn, now);
	else if (CM_IN(conn, CM_S(DREQ_SENT)))
		cm_post_again_by_tick(conn, now);
	else if (CM_IN(conn, CM_S(TIMEWAIT)))
		cm_enter_timewait(conn, now);
}

/* A frozen connection is not half open: else the manager could give it up for a newer one. */
void cm_freeze(struct cm_conn *conn)
{
	if (conn->frozen)
		return;
	conn->frozen = true;
	conn->cm->n_frozen++;
	cm_await_no_more(conn);
	cm_leave_half_open(conn);
}

void cm_thaw(struct cm_conn *conn, uint64_t now)
{
	if (!conn->frozen)
		return;
	conn->frozen = false;
	conn->cm->n_frozen--;
	cm_go_on(conn, now);
}

/* The connection of a REQ, or of the queue pair that the REQ names; NULL: none. */
static const struct cm_conn *find_requested(const struct cm *cm, const struct cm_path *path,
					    const struct cm_req *req)
{
	const struct cm_conn *conn = cm_find_peer(cm, path, req->ca_guid, req->local_id);

	return conn ? conn : cm_find_qpn(cm, path, req->ca_guid, req->qpn);
}

/* The connection that a REJ is about; NULL: none. A peer that withdraws a REQ may not know our
 * ID. */
static const struct cm_conn *find_rejected(const struct cm *cm, const struct cm_path *path,
					   const struct cm_rej *rej)
{
	uint64_t guid;

	if (rej->reason != CM_REJ_TIMEOUT)
		return cm_find_from(cm, path, rej->remote_id);
	memcpy(&guid, rej->ari, sizeof(guid));
	return cm_find_peer(cm, path, be64toh(guid), rej->local_id);
}

static const struct cm_conn *find_target(const struct cm *cm, const struct cm_path *path,
					 const struct cm_mad *mad)
{
	switch ((enum cm_attr)mad->attr) {
	case CM_REQ: return find_requested(cm, path, &mad->req);
	case CM_MRA: return cm_find_from(cm, path, mad->mra.remote_id);
	case CM_REJ: return find_rejected(cm, path, &mad->rej);
	case CM_REP: return cm_find_from(cm, path, mad->rep.remote_id);
	case CM_RTU:
	case CM_DREQ:
	case CM_DREP: return cm_find_from(cm, path, mad->pair.remote_id);
	case CM_SIDR_REQ:
		return cm_find_peer(cm, path, cm_path_key(path), mad->sidr_req.request_id);
	case CM_SIDR_REP: return cm_find_from(cm, path, mad->sidr_rep.request_id);
	default: return NULL;
	}
}

bool cm_is_for_frozen(const struct cm *cm, const struct cm_path *path, const struct cm_mad *mad)
{
	const struct cm_conn *conn = cm->n_frozen ? find_target(cm, path, mad) : NULL;

	return conn && conn->frozen;
}
