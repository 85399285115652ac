/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills structures of rdma/rdma_user_cm.h from an ID: events, routes, QP attributes (ucma.h). */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <cm/ip.h>
#include <rxe/packet.h>
#include <rxe/types.h>

#include "urxed/cm/ucma.h"

#define PORT      1
#define HOP_LIMIT 64
#define EXACTLY   2 /* enum ib_sa_selector */

/* --- Events */

static void fill_ah(struct ib_uverbs_ah_attr *ah, const struct cma_id *id)
{
	const struct cm_channel *c = id->conn ? cm_channel(id->conn) : NULL;

	*ah = (struct ib_uverbs_ah_attr){.is_global = 1, .port_num = PORT};
	memcpy(ah->grh.dgid, id->peer, sizeof(ah->grh.dgid));
	ah->grh.sgid_index = id->sgid_index;
	ah->grh.hop_limit = HOP_LIMIT;
	if (!c)
		return;
	ah->sl = c->path.sl;
	ah->grh.flow_label = c->path.flow_label;
	ah->grh.traffic_class = c->path.traffic_class;
	if (c->path.hop_limit)
		ah->grh.hop_limit = c->path.hop_limit;
}

static void fill_ud(struct rdma_ucm_ud_param *ud, const struct cma_param *p)
{
	ud->qp_num = p->qpn;
	ud->qkey = p->qkey;
	ud->private_data_len = p->private_len;
	memcpy(ud->private_data, p->private_data, p->private_len);
}

static void fill_conn(struct rdma_ucm_conn_param *conn, const struct cma_param *p)
{
	conn->qp_num = p->qpn;
	conn->srq = p->srq;
	conn->responder_resources = p->responder_resources;
	conn->initiator_depth = p->initiator_depth;
	conn->flow_control = p->flow_control;
	conn->retry_count = p->retry_count;
	conn->rnr_retry_count = p->rnr_retry_count;
	conn->private_data_len = p->private_len;
	memcpy(conn->private_data, p->private_data, p->private_len);
}

void ucma_fill_event(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		     const struct cma_event *event)
{
	*resp = (struct rdma_ucm_event_resp){.event = event->type,
					     .status = (uint32_t)event->status,
					     .ece = {.vendor_id = event->param.ece.vendor_id,
						     .attr_mod = event->param.ece.options}};
	if (id->service != CMA_UD) {
		fill_conn(&resp->param.conn, &event->param);
		return;
	}
	fill_ud(&resp->param.ud, &event->param);
	/* As in the kernel, only ESTABLISHED and the event of a group carry an address handle. */
	if (event->type == CMA_ESTABLISHED)
		fill_ah(&resp->param.ud.ah_attr, id);
}

void ucma_fill_join(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		    const uint8_t mgid[16])
{
	struct rdma_ucm_ud_param *ud = &resp->param.ud;

	*resp = (struct rdma_ucm_event_resp){.event = CMA_MULTICAST_JOIN};
	ud->qp_num = URXE_QPN_MULTICAST;
	ud->qkey = id->qkey ? id->qkey : CMA_UD_QKEY;
	fill_ah(&ud->ah_attr, id);
	memcpy(ud->ah_attr.grh.dgid, mgid, sizeof(ud->ah_attr.grh.dgid));
}

/* --- Routes */

static void fill_path(struct ib_user_path_rec *path, const struct cma_id *id)
{
	const struct cm_path p = cma_path(id);

	path->mtu = cma_path_mtu(id);
	path->mtu_selector = EXACTLY;
	path->rate = port_rate_of_path(host_rate(id->cma->host));
	path->rate_selector = EXACTLY;
	path->packet_life_time = cma_packet_lifetime(id);
	path->packet_life_time_selector = EXACTLY;
	path->flow_label = htobe32(p.flow_label);
	path->reversible = 1;
	path->numb_path = 1;
	path->hop_limit = p.hop_limit ? p.hop_limit : HOP_LIMIT;
	path->traffic_class = p.traffic_class;
	path->sl = p.sl;
	path->pkey = htobe16(p.pkey);
}

/* The layout of a PathRecord, in network byte order (IBA 15.2.5.16). */
struct path_record {
	uint64_t service_id;
	uint8_t dgid[16];
	uint8_t sgid[16];
	uint16_t dlid;
	uint16_t slid;
	uint32_t flow_and_hops;
	uint8_t traffic_class;
	uint8_t reversible_and_n;
	uint16_t pkey;
	uint16_t qos_and_sl;
	uint8_t mtu; /* mtu, rate and lifetime each begin with a 2-bit selector */
	uint8_t rate;
	uint8_t lifetime;
	uint8_t preference;
	uint8_t reserved[6];
};

#define ONE_WAY_PATH (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)

/* Whether a query returns a path. As in the kernel, the new ID of a SIDR_REQ has none, because a
 * SIDR_REQ carries none. */
static bool has_route(const struct cma_id *id)
{
	bool is_from_sidr_req = id->service == CMA_UD && !id->src.ps;

	return id->has_device &&
	       (id->state == CMA_STATE_ROUTE_RESOLVED || (id->conn && !is_from_sidr_req));
}

static const uint8_t *own_gid(const struct cma_id *id)
{
	const struct host_address *own = cma_own_address(id);

	return own ? own->ip : NULL;
}

uint32_t ucma_fill_path(struct rdma_ucm_query_path_resp *resp, struct ib_path_rec_data *data,
			const struct cma_id *id)
{
	struct ib_user_path_rec path = {.mtu = 0};
	struct path_record record = {.service_id = 0};
	const uint8_t *own = own_gid(id);

	*resp = (struct rdma_ucm_query_path_resp){.num_paths = has_route(id)};
	if (!resp->num_paths)
		return 0;
	fill_path(&path, id);
	memcpy(record.dgid, id->peer, sizeof(record.dgid));
	if (own)
		memcpy(record.sgid, own, sizeof(record.sgid));
	record.flow_and_hops = htobe32(be32toh(path.flow_label) << 8 | path.hop_limit);
	record.traffic_class = path.traffic_class;
	record.reversible_and_n = (uint8_t)(path.reversible << 7 | path.numb_path);
	record.pkey = path.pkey;
	record.qos_and_sl = htobe16(path.sl);
	record.mtu = (uint8_t)(path.mtu_selector << 6 | path.mtu);
	record.rate = (uint8_t)(path.rate_selector << 6 | path.rate);
	record.lifetime = (uint8_t)(path.packet_life_time_selector << 6 | path.packet_life_time);
	*data = (struct ib_path_rec_data){.flags = ONE_WAY_PATH};
	memcpy(data->path_rec, &record, sizeof(record));
	return 1;
}

int ucma_read_path(const struct ib_path_rec_data *data, uint32_t n, uint8_t *traffic_class)
{
	struct path_record record;

	for (uint32_t i = 0; i < n; i++) {
		if (data[i].flags != ONE_WAY_PATH)
			continue;
		memcpy(&record, data[i].path_rec, sizeof(record));
		*traffic_class = record.traffic_class;
		return 0;
	}
	return -EINVAL;
}

static void fill_device(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id)
{
	*resp = (struct rdma_ucm_query_addr_resp){0};
	if (!id->has_device)
		return;
	resp->node_guid = htobe64(cma_node_guid(id->cma->host));
	resp->port_num = PORT;
}

void ucma_fill_addr(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id)
{
	fill_device(resp, id);
	resp->src_size =
		(uint16_t)cma_addr_to(&id->src.addr, &resp->src_addr, sizeof(resp->src_addr));
	resp->dst_size = (uint16_t)cma_addr_to(&id->dst, &resp->dst_addr, sizeof(resp->dst_addr));
}

static uint16_t write_gid_address(const struct cma_id *id, const uint8_t *gid, uint16_t port,
				  struct __kernel_sockaddr_storage *out)
{
	struct cma_addr addr = {
		.family = CMA_AF_IB, .service_id = cm_service_id(id->ps, port), .mask = UINT64_MAX};

	if (gid)
		memcpy(addr.ip, gid, sizeof(addr.ip));
	return (uint16_t)cma_addr_to(&addr, out, sizeof(*out));
}

void ucma_fill_gid(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id)
{
	fill_device(resp, id);
	resp->src_size = write_gid_address(id, own_gid(id), id->src.addr.port, &resp->src_addr);
	resp->dst_size = write_gid_address(id, id->has_device ? id->peer : NULL, id->dst.port,
					   &resp->dst_addr);
}

void ucma_fill_route(struct rdma_ucm_query_route_resp *resp, const struct cma_id *id)
{
	const uint8_t *own = own_gid(id);

	*resp = (struct rdma_ucm_query_route_resp){0};
	cma_addr_to(&id->src.addr, &resp->src_addr, sizeof(resp->src_addr));
	cma_addr_to(&id->dst, &resp->dst_addr, sizeof(resp->dst_addr));
	if (!id->has_device)
		return;
	resp->node_guid = htobe64(cma_node_guid(id->cma->host));
	resp->port_num = PORT;
	if (own)
		memcpy(resp->ib_route[0].sgid, own, sizeof(resp->ib_route[0].sgid));
	memcpy(resp->ib_route[0].dgid, id->peer, sizeof(id->peer));
	resp->ib_route[0].pkey = htobe16(id->cma->host->pkeys[0]);
	if (!has_route(id))
		return;
	resp->num_paths = 1;
	fill_path(&resp->ib_route[0], id);
}

/* --- Queue pairs */

static uint16_t pkey_index(const struct cma_id *id)
{
	int i = id->conn ? host_find_pkey(id->cma->host, cm_channel(id->conn)->path.pkey) : 0;

	return (uint16_t)(i < 0 ? 0 : i);
}

static void fill_init(struct ib_uverbs_qp_attr *attr, const struct cma_id *id)
{
	attr->qp_attr_mask = URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT;
	attr->pkey_index = pkey_index(id);
	attr->port_num = PORT;
	if (id->service == CMA_UD) {
		attr->qp_attr_mask |= URXE_QP_QKEY;
		attr->qkey = id->qkey ? id->qkey : CMA_UD_QKEY;
		return;
	}
	attr->qp_attr_mask |= URXE_QP_ACCESS_FLAGS;
	if (!id->conn)
		return;
	attr->qp_access_flags = URXE_ACCESS_REMOTE_WRITE;
	if (cm_channel(id->conn)->responder_resources)
		attr->qp_access_flags |= URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC;
}

/* Returns true if a REQ or REP has told the peer's QPN, and the connection has not ended. */
static bool has_channel(const struct cma_id *id)
{
	switch (id->conn ? cm_state(id->conn) : CM_IDLE) {
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
	case CM_ESTABLISHED: return true;
	default: return false;
	}
}

static int fill_conn_init(struct ib_uverbs_qp_attr *attr, const struct cma_id *id)
{
	enum cm_state state = cm_state(id->conn);

	if (state != CM_REQ_SENT && state != CM_MRA_REQ_RCVD && !has_channel(id))
		return -EINVAL;
	fill_init(attr, id);
	return 0;
}

static int fill_rtr(struct ib_uverbs_qp_attr *attr, const struct cma_id *id)
{
	const struct cm_channel *c;

	attr->qp_attr_mask = URXE_QP_STATE;
	if (!has_channel(id))
		return -EINVAL;
	c = cm_channel(id->conn);
	attr->qp_attr_mask |= URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN;
	fill_ah(&attr->ah_attr, id);
	attr->path_mtu = c->mtu;
	attr->dest_qp_num = c->remote_qpn;
	attr->rq_psn = id->psn;
	if (id->service == CMA_RC) {
		attr->qp_attr_mask |= URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = c->responder_resources;
	}
	return 0;
}

static int fill_rts(struct ib_uverbs_qp_attr *attr, const struct cma_id *id)
{
	const struct cm_channel *c;

	attr->qp_attr_mask = URXE_QP_STATE | URXE_QP_SQ_PSN;
	if (!has_channel(id))
		return -EINVAL;
	c = cm_channel(id->conn);
	attr->sq_psn = c->sq_psn;
	if (id->service == CMA_RC) {
		attr->qp_attr_mask |= URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				      URXE_QP_MAX_QP_RD_ATOMIC;
		attr->timeout = id->ack_timeout_set ? id->ack_timeout : c->ack_timeout;
		attr->retry_cnt = c->retry_count;
		attr->rnr_retry = c->rnr_retry_count;
		attr->max_rd_atomic = c->initiator_depth;
	}
	return 0;
}

int ucma_fill_qp_attr(struct ib_uverbs_qp_attr *attr, const struct cma_id *id, uint32_t state)
{
	*attr = (struct ib_uverbs_qp_attr){.qp_state = state};
	if (!id->has_device || state > URXE_QPS_ERR)
		return -EINVAL;
	if (id->state == CMA_LISTEN && id->service != CMA_UD)
		return -EINVAL;
	/* Without a connection the kernel fills the attributes for INIT, whatever the state. */
	if (!id->conn || id->service == CMA_UD) {
		fill_init(attr, id);
		return 0;
	}
	switch (state) {
	case URXE_QPS_INIT: return fill_conn_init(attr, id);
	case URXE_QPS_RTR: return fill_rtr(attr, id);
	case URXE_QPS_RTS: return fill_rts(attr, id);
	default: return -EINVAL;
	}
}
