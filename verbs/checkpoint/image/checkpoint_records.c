/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/checkpoint_records.h"

#include "checkpoint/checkpoint.h"

const struct state_format checkpoint_format = {
	.name = "urxeproc", .version = URXE_CHECKPOINT_VERSION, .long_records = true};

static void gid_fields(struct state_stream *s, struct vnic_attach_gid *gid)
{
	state_bytes(s, gid->raw, sizeof(gid->raw));
	state_u8s(s, &gid->valid, &gid->v1);
	state_u16(s, &gid->vlan);
}

void process_fields(struct state_stream *s, struct process_record *r)
{
	state_bytes(s, r->mac, sizeof(r->mac));
	state_u16(s, &r->mtu);
	state_u32s(s, &r->page_size, &r->last_pd, &r->n_blocks);
	state_require(s, r->n_blocks && r->n_blocks <= VNIC_LEASES_MAX);
	for (uint32_t i = 0; !s->error && i < r->n_blocks; i++)
		state_u32(s, &r->blocks[i]);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		gid_fields(s, &r->gids[i]);
	state_u16(s, &r->link_mtu);
	state_bool(s, &r->up);
}

void channel_fields(struct state_stream *s, struct channel_record *r)
{
	state_u32(s, &r->event_size);
}

void unread_event_fields(struct state_stream *s, struct event_record *r)
{
	state_u64(s, &r->element);
	state_u32(s, &r->type);
}

void context_fields(struct state_stream *s, struct context_record *r)
{
	state_u64s(s, &r->memfd_size, &r->ring_offset, &r->mapped_offset, &r->mapped_address);
	state_u32s(s, &r->async_channel, &r->poll_ends);
	state_u64s(s, &r->hooks.poll_cq, &r->hooks.post_recv, &r->hooks.post_srq_recv,
		   &r->hooks.start_poll, &r->hooks.next_poll, &r->hooks.end_poll);
}

static void object_fields(struct state_stream *s, struct object_record *r)
{
	state_u32s(s, &r->context, &r->handle);
	state_u64(s, &r->user_handle);
}

void pd_fields(struct state_stream *s, struct pd_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->number);
}

void mr_fields(struct state_stream *s, struct mr_record *r)
{
	object_fields(s, &r->object);
	state_u32s(s, &r->pd, &r->key);
	state_u64s(s, &r->start, &r->length);
	if (s->version >= 3)
		state_bool(s, &r->whole);
	else
		r->whole = true;
}

void mw_fields(struct state_stream *s, struct mw_record *r)
{
	object_fields(s, &r->object);
	state_u32s(s, &r->pd, &r->key);
}

void ah_fields(struct state_stream *s, struct ah_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->pd);
	state_bytes(s, r->path.dgid.raw, sizeof(r->path.dgid.raw));
	state_bytes(s, r->path.dmac, sizeof(r->path.dmac));
	state_u8s(s, &r->path.sgid_index, &r->path.traffic_class, &r->path.hop_limit, &r->path.sl);
	state_u32(s, &r->path.flow_label);
}

static void ring_fields(struct state_stream *s, struct ring_record *r)
{
	state_u64s(s, &r->address, &r->offset);
	state_u32s(s, &r->mask, &r->shift);
}

static void work_queue_fields(struct state_stream *s, struct work_queue_record *r)
{
	ring_fields(s, &r->ring);
	state_u32s(s, &r->cursor, &r->base, &r->released);
}

void cq_fields(struct state_stream *s, struct cq_record *r)
{
	object_fields(s, &r->object);
	state_u32s(s, &r->channel, &r->producer, &r->comp_events, &r->async_events);
	state_bools(s, &r->armed, &r->ex_known);
	ring_fields(s, &r->ring);
}

void srq_fields(struct state_stream *s, struct srq_record *r)
{
	object_fields(s, &r->object);
	state_u32s(s, &r->pd, &r->max_sge, &r->async_events);
	work_queue_fields(s, &r->queue);
}

void qp_fields(struct state_stream *s, struct qp_record *r)
{
	object_fields(s, &r->object);
	state_u32s(s, &r->qpn, &r->pd, &r->send_cq, &r->recv_cq, &r->srq, &r->async_events);
	state_u8(s, &r->qp_type);
	state_u32s(s, &r->send_sge, &r->inline_bytes, &r->recv_sge);
	work_queue_fields(s, &r->send);
	work_queue_fields(s, &r->receive);
	state_bool(s, &r->connected);
	state_bytes(s, r->dgid, sizeof(r->dgid));
	state_u32(s, &r->remote_qpn);
}

void descriptor_fields(struct state_stream *s, struct descriptor_record *r)
{
	state_u32(s, &r->number);
	state_u8(s, &r->kind);
	state_u32(s, &r->index);
	state_bools(s, &r->cloexec, &r->nonblock);
}

void mapping_fields(struct state_stream *s, struct mapping_record *r)
{
	state_u32(s, &r->context);
	state_u64s(s, &r->start, &r->length, &r->offset);
	state_bool(s, &r->writable);
}

void ring_bytes_fields(struct state_stream *s, struct ring_bytes_record *r)
{
	state_u32(s, &r->context);
	state_u64s(s, &r->offset, &r->size);
}

void rdmacm_fields(struct state_stream *s, struct rdmacm_record *r)
{
	state_u32s(s, &r->n_ids, &r->n_states);
}

void rdmacm_id_fields(struct state_stream *s, struct rdmacm_id_record *r)
{
	uint8_t unused;

	state_u32s(s, &r->device, &r->number);
	state_u64(s, &r->uid);
	state_u16(s, &r->ps);
	state_u8(s, &r->qp_type);
	state_bool(s, &r->owner);
	if (s->version >= 3)
		state_u32(s, &r->events);
	else
		state_u8(s, &unused);
}
