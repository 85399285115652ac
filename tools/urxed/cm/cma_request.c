/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the listener of a REQ or SIDR_REQ that arrives at the host, and makes the new ID (cma.h).
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cm/ip.h>

#include "urxed/cm/cma.h"

static void fill_request_event(struct cma_event *event, const struct cm_conn *conn,
			       const struct cm_mad *mad)
{
	const struct cm_channel *c = cm_channel(conn);

	*event = (struct cma_event){.type = CMA_CONNECT_REQUEST};
	if (mad->attr == CM_SIDR_REQ) {
		cma_set_event_private_data(event, mad->private_data + CM_IP_HDR_LEN,
					   CM_SIDR_REQ_PRIVATE - CM_IP_HDR_LEN);
		return;
	}
	event->param = (struct cma_param){.qpn = mad->req.qpn,
					  .responder_resources = c->responder_resources,
					  .initiator_depth = c->initiator_depth,
					  .flow_control = mad->req.flow_control,
					  .retry_count = mad->req.retry_count,
					  .rnr_retry_count = mad->req.rnr_retry_count,
					  .srq = mad->req.srq,
					  .ece = mad->ece};
	cma_set_event_private_data(event, mad->private_data + CM_IP_HDR_LEN,
				   CM_REQ_PRIVATE - CM_IP_HDR_LEN);
}

/* Fills the new ID from the request, before cma_ops.request passes the ID on. */
static void init_request_id(struct cma_id *id, struct cm_conn *conn, const struct cm_mad *mad,
			    const struct cm_ip_hdr *hdr)
{
	const struct cm_channel *c = cm_channel(conn);

	id->state = CMA_CONNECT;
	id->conn = conn;
	id->has_device = true;
	id->sgid_index = c->path.sgid_index;
	memcpy(id->peer, c->path.dgid, sizeof(id->peer));
	memcpy(id->next_hop, c->path.mac, sizeof(id->next_hop));
	id->src.addr.family = id->dst.family = hdr->v6 ? AF_INET6 : AF_INET;
	id->src.addr.port = (uint16_t)c->service_id;
	id->dst.port = hdr->src_port;
	memcpy(id->src.addr.ip, hdr->dst, sizeof(hdr->dst));
	memcpy(id->dst.ip, hdr->src, sizeof(hdr->src));
	/* As in the kernel, a timeout of 0 gives the same packet lifetime as 1. */
	if (mad->attr == CM_REQ)
		id->route_ack_timeout = mad->req.ack_timeout ? mad->req.ack_timeout : 1;
}

static enum cma_service get_request_service(const struct cm_conn *conn, const struct cm_mad *mad)
{
	if (mad->attr == CM_SIDR_REQ)
		return CMA_UD;
	return cm_channel(conn)->service == CM_SERVICE_UC ? CMA_UC : CMA_RC;
}

bool cma_has_listener(const void *ctx, uint64_t service_id)
{
	const struct cma *cma = ctx;

	return !(service_id >> 32) &&
	       cma_port_has_listener(&cma->ports, (uint16_t)(service_id >> 16),
				     (uint16_t)service_id);
}

static struct cma_id *find_listener(struct cma *cma, const struct cm_channel *c,
				    const struct cm_ip_hdr *hdr, enum cma_service service)
{
	struct cma_addr addr = {.family = hdr->v6 ? AF_INET6 : AF_INET};
	struct cma_binding *user;
	struct cma_id *id;

	memcpy(addr.ip, hdr->dst, sizeof(addr.ip));
	user = cma_port_find_listener(&cma->ports, (uint16_t)(c->service_id >> 16),
				      (uint16_t)c->service_id, &addr,
				      c->path.sgid_index % HOST_ADDRESSES);
	if (!user)
		return NULL;
	id = (struct cma_id *)((char *)user - offsetof(struct cma_id, src));
	return id->service == service ? id : NULL;
}

/* Whether another host may have this unicast address, by Linux' rules. */
static bool is_host_address(const struct cma_addr *a)
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	if (cma_addr_is_any_or_loopback(a) || cma_addr_is_multicast(a))
		return false;
	return !cma_addr_is_v4(a) || (a->ip[12] && memcmp(a->ip + 12, broadcast, 4) != 0);
}

/*
 * Returns false if the IP addresses in the request's private data are not those of the packet, as
 * Linux sends them: programs trust these addresses, so a peer must not forge them. The daemon
 * itself writes the private data of a request from this host, so loopback and any of the host's
 * addresses are allowed there. In a request from elsewhere, the source must be none of the host's
 * addresses, not even in another VLAN, because the answer would go to the host itself.
 */
static bool has_addresses_of_packet(const struct cma *cma, const struct cm_conn *conn,
				    const struct cm_ip_hdr *hdr)
{
	const struct cm_path *path = &cm_channel(conn)->path;
	struct cma_addr src, dst;

	memcpy(src.ip, hdr->src, sizeof(src.ip));
	memcpy(dst.ip, hdr->dst, sizeof(dst.ip));
	if (path->local)
		return !cma_addr_is_any(&src) && !cma_addr_is_multicast(&src) &&
		       !cma_addr_is_multicast(&dst);
	return is_host_address(&src) && !host_find_address(cma->host, src.ip) &&
	       !memcmp(hdr->src, path->dgid, sizeof(hdr->src)) &&
	       !memcmp(hdr->dst, path->sgid, sizeof(hdr->dst));
}

enum cm_verdict cma_on_cm_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				  void **conn_ctx)
{
	enum cma_service service = get_request_service(conn, mad);
	uint64_t service_id = cm_channel(conn)->service_id;
	struct cma_id *listener, *id;
	struct cma *cma = ctx;
	struct cma_event event;
	struct cm_ip_hdr hdr;

	if (!cma_has_listener(cma, service_id))
		return CM_REJECT_NO_LISTENER;
	if (host_find_pkey(cma->host, cm_channel(conn)->path.pkey) < 0 ||
	    cm_ip_parse(&hdr, mad->private_data) || !has_addresses_of_packet(cma, conn, &hdr))
		return CM_REJECT_CONSUMER;
	listener = find_listener(cma, cm_channel(conn), &hdr, service);
	if (!listener)
		return CM_REJECT_CONSUMER;
	if (listener->frozen)
		return CM_IGNORE_FROZEN;
	if (cma_create_id(cma, listener->user, listener->ps, service, listener->ctx, &id))
		return CM_FORGET;
	init_request_id(id, conn, mad, &hdr);
	fill_request_event(&event, conn, mad);
	if (!cma->ops->request(listener, id, &event)) {
		id->conn = NULL;
		cma_destroy_id(id);
		return CM_FORGET;
	}
	*conn_ctx = id;
	return CM_TAKE;
}
