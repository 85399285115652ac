/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/ucma_record.h"

#include <string.h>
#include <sys/socket.h>

#include <vnic/state_stream.h>

#define EXP_MAX     31 /* largest exponent n of a timeout, 4.096 us * 2^n */
#define QPN_MAX     0xffffffu
#define RETRIES_MAX 15
#define EVENT_MAX   CMA_TIMEWAIT_EXIT

static const struct vnic_state_format format = {.name = "urxecmid", .version = UCMA_RECORD_VERSION};

static void u8_max(struct vnic_state_stream *s, uint8_t *value, uint8_t max)
{
	vnic_state_u8(s, value);
	vnic_state_require(s, *value <= max);
}

/* --- Fields: the same functions write and read them. */

static void addr_fields(struct vnic_state_stream *s, struct cma_addr *a)
{
	vnic_state_u16(s, &a->family);
	vnic_state_u16(s, &a->port);
	vnic_state_u32(s, &a->scope);
	vnic_state_bytes(s, a->ip, sizeof(a->ip));
	vnic_state_u64(s, &a->service_id);
	vnic_state_u64(s, &a->mask);
	vnic_state_require(s, !a->family || a->family == AF_INET || a->family == AF_INET6 ||
				      a->family == CMA_AF_IB);
}

static void binding_fields(struct vnic_state_stream *s, struct cma_binding *b)
{
	vnic_state_u16(s, &b->ps);
	addr_fields(s, &b->addr);
	vnic_state_bool(s, &b->reuseaddr);
	vnic_state_bool(s, &b->afonly);
	vnic_state_bool(s, &b->listening);
	/* Requires a port for a bound ID, because for port 0 the daemon would choose one. */
	vnic_state_require(s, !b->ps || b->addr.port);
}

static void path_fields(struct vnic_state_stream *s, struct cm_path *p)
{
	u8_max(s, &p->sgid_index, VNIC_ATTACH_GIDS - 1);
	vnic_state_bytes(s, p->sgid, sizeof(p->sgid));
	vnic_state_bytes(s, p->dgid, sizeof(p->dgid));
	vnic_state_u16(s, &p->pkey);
	vnic_state_u8(s, &p->sl);
	vnic_state_u8(s, &p->traffic_class);
	vnic_state_u8(s, &p->hop_limit);
	vnic_state_u32_max(s, &p->flow_label, 0xfffff);
	vnic_state_bytes(s, p->mac, sizeof(p->mac));
	vnic_state_bool(s, &p->known);
	vnic_state_bool(s, &p->local);
}

static void channel_fields(struct vnic_state_stream *s, struct cm_channel *c)
{
	uint32_t rq_psn = 0; /* versions 1 and 2 repeat cma_id.psn here */

	path_fields(s, &c->path);
	vnic_state_u64(s, &c->service_id);
	vnic_state_u32_max(s, &c->remote_qpn, QPN_MAX);
	if (s->version < 3)
		vnic_state_u32(s, &rq_psn);
	vnic_state_u32_max(s, &c->sq_psn, QPN_MAX);
	vnic_state_u8(s, &c->service);
	u8_max(s, &c->mtu, CM_MTU_MAX);
	vnic_state_u8(s, &c->responder_resources);
	vnic_state_u8(s, &c->initiator_depth);
	u8_max(s, &c->retry_count, 7);
	u8_max(s, &c->rnr_retry_count, 7);
	u8_max(s, &c->ack_timeout, EXP_MAX);
}

/* The daemon may repeat the last MAD that it sent, so a record must have a valid one of the CM
 * class. */
static void check_sent(struct vnic_state_stream *s, const struct cm_saved *c)
{
	struct cm_mad mad;

	if (s->error || !c->sent_attr)
		return;
	vnic_state_require(s, !cm_mad_parse(&mad, c->sent) && mad.attr == c->sent_attr);
}

static void conn_fields(struct vnic_state_stream *s, struct cm_saved *c)
{
	bool by_peer = c->by_peer;

	channel_fields(s, &c->channel);
	vnic_state_u64(s, &c->remote_guid);
	vnic_state_u64(s, &c->tid);
	vnic_state_u64(s, &c->timeout_ns);
	vnic_state_u32(s, &c->local_id);
	vnic_state_u32(s, &c->remote_id);
	vnic_state_u32_max(s, &c->local_qpn, QPN_MAX);
	vnic_state_u16(s, &c->sent_attr);
	u8_max(s, &c->state, CM_SIDR_REQ_RCVD);
	u8_max(s, &c->max_retries, RETRIES_MAX);
	vnic_state_bool(s, &by_peer);
	vnic_state_bytes(s, c->sent, sizeof(c->sent));
	c->by_peer = by_peer;
	vnic_state_require(s, c->local_id && c->state != CM_LISTEN &&
				      c->timeout_ns <= UINT64_C(4096) << EXP_MAX);
	check_sent(s, c);
}

static void check_id(struct vnic_state_stream *s, const struct cma_saved *saved)
{
	const struct cma_id *id = &saved->id;

	vnic_state_require(s,
			   id->number < CMA_IDS && (id->state == CMA_LISTEN) == id->src.listening);
	vnic_state_require(s, !id->src.listening || id->src.ps);

	vnic_state_require(s, !saved->connected || id->has_device);
}

static void id_fields(struct vnic_state_stream *s, struct ucma_record *r)
{
	struct cma_id *id = &r->id.saved.id;
	uint8_t state = (uint8_t)id->state, service = (uint8_t)id->service;

	vnic_state_u32(s, &id->number);
	vnic_state_u64(s, &r->id.uid);
	vnic_state_u32(s, &r->id.events_reported);
	vnic_state_u32_max(s, &r->id.backlog, UCMA_BACKLOG_MAX);
	vnic_state_u32_max(s, &r->id.reserve, UCMA_BACKLOG_MAX);
	u8_max(s, &state, CMA_LISTEN);
	vnic_state_u16(s, &id->ps);
	u8_max(s, &service, CMA_UD);
	binding_fields(s, &id->src);
	vnic_state_bool(s, &id->afonly_set);
	addr_fields(s, &id->dst);
	vnic_state_bool(s, &id->has_device);
	u8_max(s, &id->sgid_index, VNIC_ATTACH_GIDS - 1);
	vnic_state_bytes(s, r->id.own, sizeof(r->id.own));
	vnic_state_bytes(s, id->peer, sizeof(id->peer));
	vnic_state_u8(s, &id->tos);
	if (s->version >= 3)
		vnic_state_u8(s, &id->route_tos);
	else
		id->route_tos = id->tos;
	u8_max(s, &id->ack_timeout, EXP_MAX);
	vnic_state_bool(s, &id->ack_timeout_set);
	if (s->version >= 2)
		u8_max(s, &id->route_ack_timeout, EXP_MAX);
	vnic_state_u32(s, &id->qkey);
	vnic_state_u32_max(s, &id->psn, QPN_MAX);
	vnic_state_u32_max(s, &id->qpn, QPN_MAX);
	vnic_state_u32(s, &id->timeout_ms);
	vnic_state_bool(s, &r->id.saved.connected);
	if (r->id.saved.connected)
		conn_fields(s, &r->id.saved.conn);
	id->state = (enum cma_state)state;
	id->service = (enum cma_service)service;
	check_id(s, &r->id.saved);
}

static void group_fields(struct vnic_state_stream *s, struct ucma_record *r)
{
	/* Numbers with bit 31 are those of the kernel's groups (verbs/rdmacm/router.c). */
	vnic_state_u32_max(s, &r->group.number, INT32_MAX);
	vnic_state_u32(s, &r->group.id);
	vnic_state_u64(s, &r->group.uid);
	vnic_state_u32(s, &r->group.events_reported);
}

/* The event is saved in the layout of rdma/rdma_user_cm.h in which the program gets it. */
static void event_fields(struct vnic_state_stream *s, struct ucma_record *r)
{
	uint32_t n = sizeof(r->event.resp);

	vnic_state_u32(s, &r->event.id);
	vnic_state_u32(s, &r->event.child);
	vnic_state_u32(s, &r->event.group);
	vnic_state_u32(s, &n);
	vnic_state_require(s, n == sizeof(r->event.resp));
	vnic_state_bytes(s, &r->event.resp, sizeof(r->event.resp));
	vnic_state_require(s, r->event.resp.event <= EVENT_MAX);
	vnic_state_require(s, r->event.child == UCMA_NO_NUMBER ||
				      r->event.resp.event == CMA_CONNECT_REQUEST);
}

static void record_fields(struct vnic_state_stream *s, struct ucma_record *r)
{
	vnic_state_u32(s, &r->kind);
	switch (r->kind) {
	case UCMA_RECORD_FILE: vnic_state_u64(s, &r->file.token); return;
	case UCMA_RECORD_ID: id_fields(s, r); return;
	case UCMA_RECORD_GROUP: group_fields(s, r); return;
	case UCMA_RECORD_EVENT: event_fields(s, r); return;
	default: vnic_state_fail(s, -EBADMSG); return;
	}
}

/* --- Whole records. */

uint32_t ucma_record_write(struct ucma_record *r, uint8_t out[CM_ATTACH_BYTES])
{
	struct vnic_state_stream s;

	vnic_state_begin_save_to(&s, &format, out, CM_ATTACH_BYTES);
	record_fields(&s, r);
	return vnic_state_finish_save_to(&s) ? 0 : (uint32_t)s.at;
}

int ucma_record_read(struct ucma_record *r, const uint8_t *bytes, uint32_t n)
{
	struct vnic_state_stream s;

	memset(r, 0, sizeof(*r));
	vnic_state_begin_restore(&s, &format, bytes, n);
	record_fields(&s, r);
	return vnic_state_finish_restore(&s);
}
