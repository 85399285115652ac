/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/records.h"

static void gid_fields(struct byte_stream *s, struct vnic_attach_gid *gid)
{
	field_bytes(s, gid->raw, sizeof(gid->raw));
	field_u8(s, &gid->valid);
	field_u8(s, &gid->v1);
	field_u16(s, &gid->vlan);
}

void process_fields(struct byte_stream *s, struct process_record *r)
{
	field_bytes(s, r->mac, sizeof(r->mac));
	field_u16(s, &r->mtu);
	field_u32(s, &r->page_size);
	field_u32(s, &r->last_pd);
	field_u32(s, &r->n_blocks);
	byte_stream_require(s, r->n_blocks && r->n_blocks <= VNIC_LEASES_MAX);
	for (uint32_t i = 0; !s->error && i < r->n_blocks; i++)
		field_u32(s, &r->blocks[i]);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		gid_fields(s, &r->gids[i]);
	field_u16(s, &r->link_mtu);
	field_bool(s, &r->up);
}

void channel_fields(struct byte_stream *s, struct channel_record *r)
{
	field_u32(s, &r->event_size);
}

void unread_event_fields(struct byte_stream *s, struct event_record *r)
{
	field_u64(s, &r->element);
	field_u32(s, &r->type);
}

void context_fields(struct byte_stream *s, struct context_record *r)
{
	field_u64(s, &r->memfd_size);
	field_u64(s, &r->ring_offset);
	field_u64(s, &r->mapped_offset);
	field_u64(s, &r->mapped_address);
	field_u32(s, &r->async_channel);
	field_u32(s, &r->poll_ends);
	field_u64(s, &r->hooks.poll_cq);
	field_u64(s, &r->hooks.post_recv);
	field_u64(s, &r->hooks.post_srq_recv);
	field_u64(s, &r->hooks.start_poll);
	field_u64(s, &r->hooks.next_poll);
	field_u64(s, &r->hooks.end_poll);
}

static void object_fields(struct byte_stream *s, struct object_record *r)
{
	field_u32(s, &r->context);
	field_u32(s, &r->handle);
	field_u64(s, &r->user_handle);
}

void pd_fields(struct byte_stream *s, struct pd_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->number);
}

void mr_fields(struct byte_stream *s, struct mr_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->pd);
	field_u32(s, &r->key);
	field_u64(s, &r->start);
	field_u64(s, &r->length);
}

void mw_fields(struct byte_stream *s, struct mw_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->pd);
	field_u32(s, &r->key);
}

void ah_fields(struct byte_stream *s, struct ah_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->pd);
	field_bytes(s, r->path.dgid.raw, sizeof(r->path.dgid.raw));
	field_bytes(s, r->path.dmac, sizeof(r->path.dmac));
	field_u8(s, &r->path.sgid_index);
	field_u8(s, &r->path.traffic_class);
	field_u8(s, &r->path.hop_limit);
	field_u8(s, &r->path.sl);
	field_u32(s, &r->path.flow_label);
}

static void ring_fields(struct byte_stream *s, struct ring_record *r)
{
	field_u64(s, &r->address);
	field_u64(s, &r->offset);
	field_u32(s, &r->mask);
	field_u32(s, &r->shift);
}

static void work_queue_fields(struct byte_stream *s, struct work_queue_record *r)
{
	ring_fields(s, &r->ring);
	field_u32(s, &r->cursor);
	field_u32(s, &r->base);
	field_u32(s, &r->released);
}

void cq_fields(struct byte_stream *s, struct cq_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->channel);
	field_u32(s, &r->producer);
	field_u32(s, &r->comp_events);
	field_u32(s, &r->async_events);
	field_bool(s, &r->armed);
	field_bool(s, &r->ex_known);
	ring_fields(s, &r->ring);
}

void srq_fields(struct byte_stream *s, struct srq_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->pd);
	field_u32(s, &r->max_sge);
	field_u32(s, &r->async_events);
	work_queue_fields(s, &r->queue);
}

void qp_fields(struct byte_stream *s, struct qp_record *r)
{
	object_fields(s, &r->object);
	field_u32(s, &r->qpn);
	field_u32(s, &r->pd);
	field_u32(s, &r->send_cq);
	field_u32(s, &r->recv_cq);
	field_u32(s, &r->srq);
	field_u32(s, &r->async_events);
	field_u8(s, &r->qp_type);
	field_u32(s, &r->send_sge);
	field_u32(s, &r->inline_bytes);
	field_u32(s, &r->recv_sge);
	work_queue_fields(s, &r->send);
	work_queue_fields(s, &r->receive);
	field_bool(s, &r->connected);
	field_bytes(s, r->dgid, sizeof(r->dgid));
	field_u32(s, &r->remote_qpn);
}

void descriptor_fields(struct byte_stream *s, struct descriptor_record *r)
{
	field_u32(s, &r->number);
	field_u8(s, &r->kind);
	field_u32(s, &r->index);
	field_bool(s, &r->cloexec);
	field_bool(s, &r->nonblock);
}

void mapping_fields(struct byte_stream *s, struct mapping_record *r)
{
	field_u32(s, &r->context);
	field_u64(s, &r->start);
	field_u64(s, &r->length);
	field_u64(s, &r->offset);
	field_bool(s, &r->writable);
}

void ring_bytes_fields(struct byte_stream *s, struct ring_bytes_record *r)
{
	field_u32(s, &r->context);
	field_u64(s, &r->offset);
	field_u64(s, &r->size);
}
