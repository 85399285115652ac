/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/ucma_record.h"

#include <string.h>
#include <sys/socket.h>

#include <rxe/state_stream.h>

#define EXP_MAX     31 /* largest exponent n of a timeout, 4.096 us * 2^n */
#define QPN_MAX     0xffffffu
#define RETRIES_MAX 15
#define EVENT_MAX   CMA_TIMEWAIT_EXIT

static const struct state_format format = {.name = "urxecmid", .version = UCMA_RECORD_VERSION};

/* --- Fields: the same functions write and read them. */

static void addr_fields(struct state_stream *s, struct cma_addr *a)
{
	state_u16s(s, &a->family, &a->port);
	state_u32(s, &a->scope);
	state_bytes(s, a->ip, sizeof(a->ip));
	state_u64s(s, &a->service_id, &a->mask);
	state_require(s, !a->family || a->family == AF_INET || a->family == AF_INET6 ||
				 a->family == CMA_AF_IB);
}

static void binding_fields(struct state_stream *s, struct cma_binding *b)
{
	state_u16(s, &b->ps);
	addr_fields(s, &b->addr);
	state_bools(s, &b->reuseaddr, &b->afonly, &b->listening);
	/* Requires a port for a bound ID, because for port 0 the daemon would choose one. */
	state_require(s, !b->ps || b->addr.port);
}

static void path_fields(struct state_stream *s, struct cm_path *p)
{
	state_u8_max(s, &p->sgid_index, VNIC_ATTACH_GIDS - 1);
	state_bytes(s, p->sgid, sizeof(p->sgid));
	state_bytes(s, p->dgid, sizeof(p->dgid));
	state_u16(s, &p->pkey);
	state_u8s(s, &p->sl, &p->traffic_class, &p->hop_limit);
	state_u32_max(s, &p->flow_label, 0xfffff);
	state_bytes(s, p->mac, sizeof(p->mac));
	state_bools(s, &p->known, &p->local);
}

static void channel_fields(struct state_stream *s, struct cm_channel *c)
{
	uint32_t rq_psn = 0; /* versions 1 and 2 repeat cma_id.psn here */

	path_fields(s, &c->path);
	state_u64(s, &c->service_id);
	state_u32_max(s, &c->remote_qpn, QPN_MAX);
	if (s->version < 3)
		state_u32(s, &rq_psn);
	state_u32_max(s, &c->sq_psn, QPN_MAX);
	state_u8(s, &c->service);
	state_u8_max(s, &c->mtu, CM_MTU_MAX);
	state_u8s(s, &c->responder_resources, &c->initiator_depth);
	state_u8_max(s, &c->retry_count, 7);
	state_u8_max(s, &c->rnr_retry_count, 7);
	state_u8_max(s, &c->ack_timeout, EXP_MAX);
}

/* The daemon may repeat the last MAD that it sent, so a record must have a valid one of the CM
 * class. */
static void check_sent(struct state_stream *s, const struct cm_saved *c)
{
	struct cm_mad mad;

	if (s->error || !c->sent_attr)
		return;
	state_require(s, !cm_mad_parse(&mad, c->sent) && mad.attr == c->sent_attr);
}

static void conn_fields(struct state_stream *s, struct cm_saved *c)
{
	bool by_peer = c->by_peer;

	channel_fields(s, &c->channel);
	state_u64s(s, &c->remote_guid, &c->tid, &c->timeout_ns);
	state_u32s(s, &c->local_id, &c->remote_id);
	state_u32_max(s, &c->local_qpn, QPN_MAX);
	state_u16(s, &c->sent_attr);
	state_u8_max(s, &c->state, CM_SIDR_REQ_RCVD);
	state_u8_max(s, &c->max_retries, RETRIES_MAX);
	state_bool(s, &by_peer);
	state_bytes(s, c->sent, sizeof(c->sent));
	c->by_peer = by_peer;
	state_require(s, c->local_id && c->state != CM_LISTEN &&
				 c->timeout_ns <= UINT64_C(4096) << EXP_MAX);
	check_sent(s, c);
}

static void check_id(struct state_stream *s, const struct cma_saved *saved)
{
	const struct cma_id *id = &saved->id;

	state_require(s, id->number < CMA_IDS && (id->state == CMA_LISTEN) == id->src.listening);
	state_require(s, !id->src.listening || id->src.ps);

	state_require(s, !saved->connected || id->has_device);
}

static void id_fields(struct state_stream *s, struct ucma_record *r)
{
	struct cma_id *id = &r->id.saved.id;
	uint8_t state = (uint8_t)id->state, service = (uint8_t)id->service;

	state_u32(s, &id->number);
	state_u64(s, &r->id.uid);
	state_u32(s, &r->id.events_reported);
	state_u32_max(s, &r->id.backlog, UCMA_BACKLOG_MAX);
	state_u32_max(s, &r->id.reserve, UCMA_BACKLOG_MAX);
	state_u8_max(s, &state, CMA_LISTEN);
	state_u16(s, &id->ps);
	state_u8_max(s, &service, CMA_UD);
	binding_fields(s, &id->src);
	state_bool(s, &id->afonly_set);
	addr_fields(s, &id->dst);
	state_bool(s, &id->has_device);
	state_u8_max(s, &id->sgid_index, VNIC_ATTACH_GIDS - 1);
	state_bytes(s, r->id.own, sizeof(r->id.own));
	state_bytes(s, id->peer, sizeof(id->peer));
	state_u8(s, &id->tos);
	if (s->version >= 3)
		state_u8(s, &id->route_tos);
	else
		id->route_tos = id->tos;
	state_u8_max(s, &id->ack_timeout, EXP_MAX);
	state_bool(s, &id->ack_timeout_set);
	if (s->version >= 2)
		state_u8_max(s, &id->route_ack_timeout, EXP_MAX);
	state_u32(s, &id->qkey);
	state_u32_max(s, &id->psn, QPN_MAX);
	state_u32_max(s, &id->qpn, QPN_MAX);
	state_u32(s, &id->timeout_ms);
	state_bool(s, &r->id.saved.connected);
	if (r->id.saved.connected)
		conn_fields(s, &r->id.saved.conn);
	id->state = (enum cma_state)state;
	id->service = (enum cma_service)service;
	check_id(s, &r->id.saved);
}

static void group_fields(struct state_stream *s, struct ucma_record *r)
{
	/* Numbers with bit 31 are those of the kernel's groups (verbs/rdmacm/router.c). */
	state_u32_max(s, &r->group.number, INT32_MAX);
	state_u32(s, &r->group.id);
	state_u64(s, &r->group.uid);
	state_u32(s, &r->group.events_reported);
}

/* The event is saved in the layout of rdma/rdma_user_cm.h in which the program gets it. */
static void event_fields(struct state_stream *s, struct ucma_record *r)
{
	uint32_t n = sizeof(r->event.resp);

	state_u32s(s, &r->event.id, &r->event.child, &r->event.group, &n);
	state_require(s, n == sizeof(r->event.resp));
	state_bytes(s, &r->event.resp, sizeof(r->event.resp));
	state_require(s, r->event.resp.event <= EVENT_MAX);
	state_require(s, r->event.child == UCMA_NO_NUMBER ||
				 r->event.resp.event == CMA_CONNECT_REQUEST);
}

static void record_fields(struct state_stream *s, struct ucma_record *r)
{
	state_u32(s, &r->kind);
	switch (r->kind) {
	case UCMA_RECORD_FILE: state_u64(s, &r->file.token); return;
	case UCMA_RECORD_ID: id_fields(s, r); return;
	case UCMA_RECORD_GROUP: group_fields(s, r); return;
	case UCMA_RECORD_EVENT: event_fields(s, r); return;
	default: state_fail(s, -EBADMSG); return;
	}
}

/* --- Whole records. */

uint32_t ucma_record_write(struct ucma_record *r, uint8_t out[CM_ATTACH_BYTES])
{
	struct state_stream s;

	stream_begin_save_to(&s, &format, out, CM_ATTACH_BYTES);
	record_fields(&s, r);
	return stream_finish_save_to(&s) ? 0 : (uint32_t)s.at;
}

int ucma_record_read(struct ucma_record *r, const uint8_t *bytes, uint32_t n)
{
	struct state_stream s;

	memset(r, 0, sizeof(*r));
	stream_begin_restore(&s, &format, bytes, n);
	record_fields(&s, r);
	return stream_finish_restore(&s);
}
