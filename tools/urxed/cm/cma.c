/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/cma.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cm/ip.h>
#include <rxe/rxe.h>

#define HOP_LIMIT 64 /* where the route says nothing */
#define PSN_MASK  0xffffffu

void cma_emit(struct cma_id *id, enum cma_event_type type, int status)
{
	const struct cma_event event = {.type = type, .status = status};

	id->cma->ops->event(id, &event);
}

uint64_t cma_guid(const struct host *host)
{
	const uint8_t *m = host->mac;
	const uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
	uint64_t guid = 0;

	for (int i = 0; i < 8; i++)
		guid = guid << 8 | eui[i];
	return guid;
}

uint8_t cma_mtu(const struct cma *cma)
{
	uint32_t bytes = urxe_max_path_mtu(cma->host->mtu);
	uint8_t mtu = 1;

	while (mtu < 5 && 128u << (mtu + 1) <= bytes)
		mtu++;
	return mtu;
}

/* --- IDs */

int cma_create_id(struct cma *cma, uint16_t ps, enum cma_service service, void *ctx,
		  struct cma_id **out)
{
	struct cma_id *id;
	uint32_t tries = 0;

	while (tries++ < CMA_IDS && cma->ids[cma->last % CMA_IDS])
		cma->last++;
	if (tries > CMA_IDS)
		return -ENOSPC;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	id->cma = cma;
	id->ctx = ctx;
	id->number = cma->last++ % CMA_IDS;
	id->ps = ps;
	id->service = service;
	id->psn = (uint32_t)(cma->psns = cma->psns * 6364136223846793005u + 1442695040888963407u) &
		  PSN_MASK;
	cma->ids[id->number] = id;
	*out = id;
	return 0;
}

void cma_destroy_id(struct cma_id *id)
{
	cma_stop_waiting(id);
	if (id->src.listening)
		cma_early_req_listener_gone(&id->cma->early, id->cma->now, id->src.addr.port);
	cma_port_release(&id->cma->ports, &id->src);
	if (id->conn)
		cm_release(id->conn, id->cma->now);
	id->cma->ids[id->number] = NULL;
	free(id);
}

struct cma_id *cma_find(const struct cma *cma, uint32_t number)
{
	return number < CMA_IDS ? cma->ids[number] : NULL;
}

/* --- Connecting */

static struct cm_path path_of(const struct cma_id *id)
{
	const struct host_address *own = host_address_by_gid(id->cma->host, id->sgid_index);
	struct cm_path path = {.sgid_index = id->sgid_index,
			       .pkey = id->cma->host->pkeys[0],
			       .traffic_class = id->tos,
			       .hop_limit = HOP_LIMIT};

	/* A flow by its ports, as the kernel makes it. */
	path.flow_label = (id->src.addr.port * 31u + id->dst.port) & 0xfffff;
	if (own)
		memcpy(path.sgid, own->ip, sizeof(path.sgid));
	memcpy(path.dgid, id->peer, sizeof(path.dgid));
	return path;
}

/* What the program wants to say, behind the addresses. -EINVAL: too much. */
static int put_private(const struct cma_id *id, const struct cma_param *p, uint8_t *data,
		       uint32_t room)
{
	struct cm_ip_hdr hdr = {.src_port = id->src.addr.port, .v6 = !cma_addr_v4(&id->dst)};

	if (CM_IP_HDR_LEN + (uint32_t)p->private_len > room)
		return -EINVAL;
	memcpy(hdr.src, id->src.addr.ip, sizeof(hdr.src));
	memcpy(hdr.dst, id->dst.ip, sizeof(hdr.dst));
	cm_ip_build(&hdr, data);
	memcpy(data + CM_IP_HDR_LEN, p->private_data, p->private_len);
	return 0;
}

static struct cm_param cm_param_of(const struct cma_id *id, const struct cma_param *p,
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
				 .private_data = data,
				 .private_len = len};
}

static int connect_rc(struct cma_id *id, const struct cma_param *p)
{
	uint8_t data[CM_REQ_PRIVATE];
	struct cm_request request = {.path = path_of(id),
				     .service_id = cm_service_id(id->ps, id->dst.port),
				     .service =
					     id->service == CMA_UC ? CM_SERVICE_UC : CM_SERVICE_RC,
				     .mtu = cma_mtu(id->cma)};
	int rc = put_private(id, p, data, sizeof(data));

	if (rc)
		return rc;
	request.param = cm_param_of(id, p, data, CM_IP_HDR_LEN + p->private_len);
	return cm_connect(id->cma->cm, id->cma->now, &request, id, &id->conn);
}

static int connect_ud(struct cma_id *id, const struct cma_param *p)
{
	uint8_t data[CM_SIDR_REQ_PRIVATE];
	const struct cm_sidr_request request = {.path = path_of(id),
						.service_id = cm_service_id(id->ps, id->dst.port),
						.timeout_ns = UINT64_C(4096) << CM_RESPONSE_TIMEOUT,
						.private_data = data,
						.private_len = CM_IP_HDR_LEN + p->private_len};
	int rc = put_private(id, p, data, sizeof(data));

	return rc ? rc : cm_sidr_resolve(id->cma->cm, id->cma->now, &request, id, &id->conn);
}

int cma_connect(struct cma_id *id, const struct cma_param *p)
{
	int rc;

	if (id->state != CMA_STATE_ROUTE_RESOLVED || id->conn)
		return -EINVAL;
	id->qpn = p->qpn;
	rc = id->service == CMA_UD ? connect_ud(id, p) : connect_rc(id, p);
	if (!rc)
		id->state = CMA_CONNECT;
	return rc;
}

static int accept_ud(struct cma_id *id, const struct cma_param *p)
{
	const struct cm_sidr_reply reply = {.status = CM_SIDR_OK,
					    .qpn = p->qpn,
					    .qkey = id->qkey ? id->qkey : CMA_UD_QKEY,
					    .private_data = p->private_data,
					    .private_len = p->private_len};

	return cm_sidr_answer(id->conn, &reply);
}

static int answer_request(struct cma_id *id, const struct cma_param *p)
{
	struct cm_param param;

	id->qpn = p->qpn;
	if (id->service == CMA_UD && p->qkey && id->qkey && p->qkey != id->qkey)
		return -EINVAL;
	if (id->service == CMA_UD) {
		id->qkey = p->qkey ? p->qkey : id->qkey;
		return accept_ud(id, p);
	}
	param = cm_param_of(id, p, p->private_data, p->private_len);
	return cm_accept(id->conn, id->cma->now, &param);
}

int cma_accept(struct cma_id *id, const struct cma_param *p)
{
	int rc;

	if (id->state != CMA_CONNECT || !id->conn || (!p && id->service == CMA_UD))
		return -EINVAL;
	rc = p ? answer_request(id, p) : cm_ready(id->conn);
	/* The peer does not wait for an answer that cannot be given. */
	if (rc)
		(void)cma_reject(id, CM_REJ_CONSUMER, NULL, 0);
	return rc;
}

int cma_reject(struct cma_id *id, uint8_t reason, const void *data, uint8_t len)
{
	const struct cm_sidr_reply refusal = {
		.status = CM_SIDR_REJECT, .private_data = data, .private_len = len};

	if (!id->conn)
		return -EINVAL;
	if (id->service == CMA_UD)
		return cm_sidr_answer(id->conn, &refusal);
	return cm_reject(id->conn, id->cma->now, reason, data, len);
}

int cma_disconnect(struct cma_id *id)
{
	if (!id->conn)
		return -EINVAL;
	/* As the kernel: one that is not connected, or no longer, is disconnected. */
	(void)cm_disconnect(id->conn, id->cma->now);
	return 0;
}

int cma_notify_established(struct cma_id *id)
{
	return id->conn ? cm_established(id->conn) : -EINVAL;
}

/* --- What the connection manager tells */

static void set_private(struct cma_event *event, const uint8_t *data, uint32_t len)
{
	event->param.private_len = (uint8_t)(len < 255 ? len : 255);
	memcpy(event->param.private_data, data, event->param.private_len);
}

static void on_rep(struct cma_id *id, const struct cm_mad *mad)
{
	const struct cm_channel *c = cm_channel(id->conn);
	struct cma_event event = {.type = CMA_CONNECT_RESPONSE,
				  .param = {.qpn = mad->rep.qpn,
					    .responder_resources = c->responder_resources,
					    .initiator_depth = c->initiator_depth,
					    .flow_control = mad->rep.flow_control,
					    .rnr_retry_count = mad->rep.rnr_retry_count,
					    .srq = mad->rep.srq}};

	set_private(&event, mad->private_data, CM_REP_PRIVATE);
	id->cma->ops->event(id, &event);
}

static void on_rej(struct cma_id *id, const struct cm_mad *mad)
{
	struct cma_event event = {.type = CMA_REJECTED, .status = mad->rej.reason};

	set_private(&event, mad->private_data, CM_REJ_PRIVATE);
	id->cma->ops->event(id, &event);
}

static void on_sidr_rep(struct cma_id *id, const struct cm_mad *mad)
{
	struct cma_event event = {.type = CMA_ESTABLISHED,
				  .param = {.qpn = mad->sidr_rep.qpn, .qkey = mad->sidr_rep.qkey}};

	set_private(&event, mad->private_data, CM_SIDR_REP_PRIVATE);
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
	cma_emit(id, CMA_DISCONNECTED, status);
}

static void on_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	struct cma_id *id = ctx;

	/* Who was rejected, or has heard of the end, hears of that alone. */
	if (id->state != (event == CM_EVENT_TIMEWAIT_EXIT ? CMA_DISCONNECT : CMA_CONNECT))
		return;
	switch (event) {
	case CM_EVENT_REP: on_rep(id, mad); return;
	case CM_EVENT_ESTABLISHED: cma_emit(id, CMA_ESTABLISHED, 0); return;
	case CM_EVENT_REJ: on_rej(id, mad); return;
	case CM_EVENT_REQ_ERROR:
	case CM_EVENT_REP_ERROR:
	case CM_EVENT_SIDR_ERROR: cma_emit(id, CMA_UNREACHABLE, -ETIMEDOUT); return;
	case CM_EVENT_DREQ_ERROR: on_disconnect(id, -ETIMEDOUT); return;
	case CM_EVENT_DREQ:
	case CM_EVENT_DREP: on_disconnect(id, 0); return;
	case CM_EVENT_TIMEWAIT_EXIT: cma_emit(id, CMA_TIMEWAIT_EXIT, 0); return;
	case CM_EVENT_SIDR_REP: on_sidr_rep(id, mad); return;
	}
}

/* --- Requests */

static void fill_request(struct cma_event *event, const struct cm_conn *conn,
			 const struct cm_mad *mad)
{
	const struct cm_channel *c = cm_channel(conn);

	*event = (struct cma_event){.type = CMA_CONNECT_REQUEST};
	if (mad->attr == CM_SIDR_REQ) {
		set_private(event, mad->private_data + CM_IP_HDR_LEN,
			    CM_SIDR_REQ_PRIVATE - CM_IP_HDR_LEN);
		return;
	}
	event->param = (struct cma_param){.qpn = mad->req.qpn,
					  .responder_resources = c->responder_resources,
					  .initiator_depth = c->initiator_depth,
					  .flow_control = mad->req.flow_control,
					  .retry_count = mad->req.retry_count,
					  .rnr_retry_count = mad->req.rnr_retry_count,
					  .srq = mad->req.srq};
	set_private(event, mad->private_data + CM_IP_HDR_LEN, CM_REQ_PRIVATE - CM_IP_HDR_LEN);
}

/* The ID of a request, before the listener's owner has it. */
static void fill_child(struct cma_id *id, struct cm_conn *conn, const struct cm_ip_hdr *hdr,
		       uint16_t port)
{
	const struct cm_channel *c = cm_channel(conn);

	id->state = CMA_CONNECT;
	id->conn = conn;
	id->has_device = true;
	id->sgid_index = c->path.sgid_index;
	memcpy(id->peer, c->path.dgid, sizeof(id->peer));
	id->src.addr.family = id->dst.family = hdr->v6 ? AF_INET6 : AF_INET;
	id->src.addr.port = port;
	id->dst.port = hdr->src_port;
	memcpy(id->src.addr.ip, hdr->dst, sizeof(hdr->dst));
	memcpy(id->dst.ip, hdr->src, sizeof(hdr->src));
}

static enum cma_service service_of(const struct cm_conn *conn, const struct cm_mad *mad)
{
	if (mad->attr == CM_SIDR_REQ)
		return CMA_UD;
	return cm_channel(conn)->service == CM_SERVICE_UC ? CMA_UC : CMA_RC;
}

static bool is_heard(const void *ctx, uint64_t service_id)
{
	const struct cma *cma = ctx;

	return !(service_id >> 32) &&
	       cma_port_has_listener(&cma->ports, (uint16_t)(service_id >> 16),
				     (uint16_t)service_id);
}

static struct cma_id *find_listener(struct cma *cma, uint64_t service_id,
				    const struct cm_ip_hdr *hdr, enum cma_service service)
{
	struct cma_addr addr = {.family = hdr->v6 ? AF_INET6 : AF_INET};
	struct cma_binding *user;
	struct cma_id *id;

	memcpy(addr.ip, hdr->dst, sizeof(addr.ip));
	user = cma_port_find_listener(&cma->ports, (uint16_t)(service_id >> 16),
				      (uint16_t)service_id, &addr);
	if (!user)
		return NULL;
	id = (struct cma_id *)((char *)user - offsetof(struct cma_id, src));
	return id->service == service ? id : NULL;
}

/*
 * Whether a peer may say that it has such an address, for programs trust it: what no host has
 * outside, and this host's own, only this one may.
 */
static bool is_plausible(const struct cma *cma, const struct cm_conn *conn,
			 const struct cm_ip_hdr *hdr)
{
	struct cma_addr src, dst;

	memcpy(src.ip, hdr->src, sizeof(src.ip));
	memcpy(dst.ip, hdr->dst, sizeof(dst.ip));
	if (cma_addr_any(&src) || cma_addr_group(&src) || cma_addr_group(&dst))
		return false;
	return (!cma_addr_loopback(&src) && !cma_addr_loopback(&dst) &&
		!host_find_address(cma->host, src.ip)) ||
	       host_find_address(cma->host, cm_channel(conn)->path.dgid);
}

static enum cm_verdict on_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				  void **conn_ctx)
{
	enum cma_service service = service_of(conn, mad);
	uint64_t service_id = cm_channel(conn)->service_id;
	struct cma_id *listener, *id;
	struct cma *cma = ctx;
	struct cma_event event;
	struct cm_ip_hdr hdr;

	if (!is_heard(cma, service_id))
		return CM_REFUSE;
	if (cm_ip_parse(&hdr, mad->private_data) || !is_plausible(cma, conn, &hdr))
		return CM_DENY;
	listener = find_listener(cma, service_id, &hdr, service);
	if (!listener)
		return CM_DENY;
	if (cma_create_id(cma, listener->ps, service, listener->ctx, &id))
		return CM_FORGET;
	fill_child(id, conn, &hdr, (uint16_t)service_id);
	id->tos = listener->tos;
	fill_request(&event, conn, mad);
	if (!cma->ops->request(listener, id, &event)) {
		id->conn = NULL;
		cma_destroy_id(id);
		return CM_FORGET;
	}
	*conn_ctx = id;
	return CM_TAKE;
}

/* --- The whole */

static void on_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	const struct cma *cma = ctx;

	cma->ops->send(cma->ctx, path, mad);
}

static const struct cm_ops cm_ops = {on_send, on_request, on_event};

static int make_cm(struct cma *cma)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EAGAIN;
	cma->psns = seed * 3;
	return cm_create(&cm_ops, cma, cma_guid(cma->host), seed, &cma->cm);
}

int cma_open(struct cma *cma, const struct host *host, struct neigh *neigh,
	     const struct cma_ops *ops, void *ctx)
{
	int rc;

	*cma = (struct cma){.ops = ops, .ctx = ctx, .host = host, .neigh = neigh};
	cma->ids = calloc(CMA_IDS, sizeof(struct cma_id *));
	rc = cma->ids ? make_cm(cma) : -ENOMEM;
	if (rc)
		cma_close(cma);
	return rc;
}

void cma_close(struct cma *cma)
{
	if (cma->cm)
		cm_destroy(cma->cm);
	free(cma->ids);
	*cma = (struct cma){0};
}

/* Whether it is a request that waits for a listener. */
static bool is_kept(struct cma *cma, const struct cm_path *path, const uint8_t bytes[CM_MAD_LEN])
{
	struct cm_mad mad;
	uint64_t service_id;

	if (cm_mad_parse(&mad, bytes) || (mad.attr != CM_REQ && mad.attr != CM_SIDR_REQ))
		return false;
	service_id = mad.attr == CM_REQ ? mad.req.service_id : mad.sidr_req.service_id;
	return !is_heard(cma, service_id) &&
	       cma_early_req_hold(&cma->early, cma->now, service_id, path, bytes);
}

void cma_input(struct cma *cma, uint64_t now, const struct cm_path *path,
	       const uint8_t mad[CM_MAD_LEN])
{
	cma->now = now;
	if (!is_kept(cma, path, mad))
		cm_input(cma->cm, now, path, mad);
}

/* Those that have found a listener, and those that have not. */
static void input_early(struct cma *cma)
{
	struct cma_early_req request;

	while (cma_early_req_take(&cma->early, cma->now, is_heard, cma, &request))
		cm_input(cma->cm, cma->now, &request.path, request.mad);
}

uint64_t cma_tick(struct cma *cma, uint64_t now)
{
	uint64_t next;
	struct cma_id *id, *after;

	cma->now = now;
	input_early(cma);
	cm_tick(cma->cm, now);
	next = cm_next_deadline(cma->cm);
	if (cma_early_req_due(&cma->early) < next)
		next = cma_early_req_due(&cma->early);
	for (id = LIST_FIRST(&cma->waiting); id; id = after) {
		after = LIST_NEXT(id, wait_link);
		if (id->due <= now) {
			cma_stop_waiting(id);
			cma_resolved(id, -ETIMEDOUT);
		} else if (id->due < next) {
			next = id->due;
		}
	}
	return next;
}
