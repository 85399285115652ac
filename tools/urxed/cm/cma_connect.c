/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connecting, accepting, rejecting and disconnecting an rdma_cm ID, and its events (cma.h). */
#include <errno.h>
#include <string.h>

#include <cm/ip.h>

#include "urxed/cm/cma.h"

#define HOP_LIMIT  64 /* in the paths of this host's requests (REQ, SIDR_REQ) */
#define FLOW_LABEL 0xfffffu

/* Chooses the service level. As in the kernel, it is the VLAN priority that the kernel gives to IP
 * packets of that traffic class in the address's VLAN. */
static uint8_t choose_sl(const struct host_address *own, uint8_t traffic_class)
{
	/* TC_PRIO_*, by bits 1 to 4 of the traffic class: rt_tos2priority() of the kernel. */
	static const uint8_t priorities[] = {0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4};

	return own->vlan_priority[priorities[traffic_class >> 1 & 0xf]];
}

static struct cm_path make_path(const struct cma_id *id)
{
	const struct host_address *own = cma_own_address(id);
	struct cm_path path = {.sgid_index = id->sgid_index,
			       .pkey = id->cma->host->pkeys[0],
			       .traffic_class = id->route_tos,
			       .hop_limit = HOP_LIMIT};

	/* As in the kernel's rdma_cm, the flow label of the source address if it has one. */
	path.flow_label = id->src.addr.flow & FLOW_LABEL;
	if (!path.flow_label)
		path.flow_label = (id->src.addr.port * 31u + id->dst.port) & FLOW_LABEL;
	if (own) {
		path.sl = choose_sl(own, id->route_tos);
		memcpy(path.sgid, own->ip, sizeof(path.sgid));
	}
	memcpy(path.dgid, id->peer, sizeof(path.dgid));
	return path;
}

struct cm_path cma_path(const struct cma_id *id)
{
	return id->conn ? cm_channel(id->conn)->path : make_path(id);
}

/* Writes the private data of a REQ or SIDR_REQ: the IP addressing header of annex A11, then the
 * program's data. Returns -EINVAL if the two do not fit into `room` bytes. */
static int build_private_data(const struct cma_id *id, const struct cma_param *p, uint8_t *data,
			      uint32_t room)
{
	struct cm_ip_hdr hdr = {.src_port = id->src.addr.port, .v6 = !cma_addr_is_v4(&id->dst)};

	if (CM_IP_HDR_LEN + (uint32_t)p->private_len > room)
		return -EINVAL;
	memcpy(hdr.src, id->src.addr.ip, sizeof(hdr.src));
	memcpy(hdr.dst, id->dst.ip, sizeof(hdr.dst));
	cm_ip_build(&hdr, data);
	memcpy(data + CM_IP_HDR_LEN, p->private_data, p->private_len);
	return 0;
}

static struct cm_param make_cm_param(const struct cma_id *id, const struct cma_param *p,
				     const uint8_t *data, uint32_t len)
{
	return (struct cm_param){.qpn = p->qpn,
				 .psn = id->psn,
				 .responder_resources = p->responder_resources,
				 .initiator_depth = p->initiator_depth,
				 .flow_control = p->flow_control,
				 .retry_count = p->retry_count < 7 ? p->retry_count : 7,
				 .rnr_retry_count = p->rnr_retry_count < 7 ? p->rnr_retry_count : 7,
				 .srq = p->srq,
				 .ece = p->ece,
				 .private_data = data,
				 .private_len = len};
}

static int send_req(struct cma_id *id, const struct cma_param *p)
{
	uint8_t data[CM_REQ_PRIVATE];
	struct cm_request request = {.path = make_path(id),
				     .service_id = cm_service_id(id->ps, id->dst.port),
				     .service =
					     id->service == CMA_UC ? CM_SERVICE_UC : CM_SERVICE_RC,
				     .mtu = cma_path_mtu(id),
				     .packet_lifetime = cma_packet_lifetime(id)};
	int rc = build_private_data(id, p, data, sizeof(data));

	if (rc)
		return rc;
	request.param = make_cm_param(id, p, data, CM_IP_HDR_LEN + p->private_len);
	return cm_connect(id->cma->cm, id->cma->now, &request, id, &id->conn);
}

static int send_sidr_req(struct cma_id *id, const struct cma_param *p)
{
	uint8_t data[CM_SIDR_REQ_PRIVATE];
	const struct cm_sidr_request request = {.path = make_path(id),
						.service_id = cm_service_id(id->ps, id->dst.port),
						.timeout_ns = UINT64_C(4096) << CM_RESPONSE_TIMEOUT,
						.private_data = data,
						.private_len = CM_IP_HDR_LEN + p->private_len};
	int rc = build_private_data(id, p, data, sizeof(data));

	return rc ? rc : cm_sidr_resolve(id->cma->cm, id->cma->now, &request, id, &id->conn);
}

int cma_connect(struct cma_id *id, const struct cma_param *p)
{
	int rc;

	if (id->state != CMA_STATE_ROUTE_RESOLVED || id->conn)
		return -EINVAL;
	id->qpn = p->qpn;
	rc = id->service == CMA_UD ? send_sidr_req(id, p) : send_req(id, p);
	if (!rc)
		id->state = CMA_CONNECT;
	return rc;
}

static int send_sidr_rep(struct cma_id *id, const struct cma_param *p)
{
	const struct cm_sidr_reply reply = {.status = CM_SIDR_OK,
					    .qpn = p->qpn,
					    .qkey = CMA_UD_QKEY,
					    .private_data = p->private_data,
					    .private_len = p->private_len};

	return cm_sidr_answer(id->conn, &reply);
}

static int accept_request(struct cma_id *id, const struct cma_param *p)
{
	struct cm_param param;

	id->qpn = p->qpn;
	if (id->service == CMA_UD)
		return send_sidr_rep(id, p);
	param = make_cm_param(id, p, p->private_data, p->private_len);
	return cm_accept(id->conn, id->cma->now, &param);
}

int cma_accept(struct cma_id *id, const struct cma_param *p)
{
	int rc;

	if (id->state != CMA_CONNECT || !id->conn || (!p && id->service == CMA_UD))
		return -EINVAL;
	rc = p ? accept_request(id, p) : cm_ready(id->conn);
	/* Without a rejection the peer would wait for a REP until its timeout. */
	if (rc)
		(void)cma_reject(id, CM_REJ_CONSUMER, NULL, 0);
	return rc;
}

int cma_reject(struct cma_id *id, enum cm_reason reason, const void *data, uint8_t len)
{
	const struct cm_sidr_reply refusal = {
		.status = CM_SIDR_REJECT, .private_data = data, .private_len = len};

	if (!id->conn)
		return -EINVAL;
	if (id->service == CMA_UD)
		return cm_sidr_answer(id->conn, &refusal);
	return cm_reject(id->conn, id->cma->now, reason, data, len);
}

/*
 * Returns -EINVAL if the ID has no connection and does not listen at a single address. As in the
 * kernel, returns 0 for a listener at a single address and for a connection that has already ended.
 */
int cma_disconnect(struct cma_id *id)
{
	if (id->conn)
		(void)cm_disconnect(id->conn, id->cma->now);
	else if (id->state != CMA_LISTEN || !id->has_device)
		return -EINVAL;
	return 0;
}

int cma_notify_established(struct cma_id *id)
{
	return id->conn ? cm_established(id->conn) : -EINVAL;
}

/* --- Events */

static void on_rep(struct cma_id *id, const struct cm_mad *mad)
{
	const struct cm_channel *c = cm_channel(id->conn);
	struct cma_event event = {.type = CMA_CONNECT_RESPONSE,
				  .param = {.qpn = mad->rep.qpn,
					    .responder_resources = c->responder_resources,
					    .initiator_depth = c->initiator_depth,
					    .flow_control = mad->rep.flow_control,
					    .rnr_retry_count = mad->rep.rnr_retry_count,
					    .srq = mad->rep.srq,
					    .ece = mad->ece}};

	cma_set_event_private_data(&event, mad->private_data, CM_REP_PRIVATE);
	id->cma->ops->event(id, &event);
}

static void on_rej(struct cma_id *id, const struct cm_mad *mad)
{
	struct cma_event event = {.type = CMA_REJECTED, .status = mad->rej.reason};

	cma_set_event_private_data(&event, mad->private_data, CM_REJ_PRIVATE);
	id->cma->ops->event(id, &event);
}

static void on_sidr_rep(struct cma_id *id, const struct cm_mad *mad)
{
	struct cma_event event = {.type = CMA_ESTABLISHED,
				  .param = {.qpn = mad->sidr_rep.qpn, .qkey = mad->sidr_rep.qkey}};

	cma_set_event_private_data(&event, mad->private_data, CM_SIDR_REP_PRIVATE);
	if (mad->sidr_rep.status != CM_SIDR_OK) {
		event.type = CMA_UNREACHABLE;
		event.status = mad->sidr_rep.status;
	} else {
		id->qkey = mad->sidr_rep.qkey;
	}
	id->cma->ops->event(id, &event);
}

static void on_disconnect(struct cma_id *id, int status)
{
	id->state = CMA_DISCONNECT;
	cma_emit_event(id, CMA_DISCONNECTED, status);
}

void cma_on_cm_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	struct cma_id *id = ctx;

	/*
	 * As in the kernel: after a disconnection only TIMEWAIT_EXIT follows. A connection that
	 * ends otherwise, as by a rejection, gets no TIMEWAIT_EXIT.
	 */
	if (id->state != (event == CM_EVENT_TIMEWAIT_EXIT ? CMA_DISCONNECT : CMA_CONNECT))
		return;
	switch (event) {
	case CM_EVENT_REP: on_rep(id, mad); return;
	case CM_EVENT_ESTABLISHED: cma_emit_event(id, CMA_ESTABLISHED, 0); return;
	case CM_EVENT_REJ: on_rej(id, mad); return;
	case CM_EVENT_REQ_ERROR:
	case CM_EVENT_REP_ERROR:
	case CM_EVENT_SIDR_ERROR: cma_emit_event(id, CMA_UNREACHABLE, -ETIMEDOUT); return;
	case CM_EVENT_DREQ_ERROR: on_disconnect(id, -ETIMEDOUT); return;
	case CM_EVENT_DREQ:
	case CM_EVENT_DREP: on_disconnect(id, 0); return;
	case CM_EVENT_TIMEWAIT_EXIT: cma_emit_event(id, CMA_TIMEWAIT_EXIT, 0); return;
	case CM_EVENT_SIDR_REP: on_sidr_rep(id, mad); return;
	}
}
