/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/checkpoint_records.h"

#include "checkpoint/checkpoint.h"

const struct state_format checkpoint_format = {
	.name = "urxeproc", .version = URXE_CHECKPOINT_VERSION, .long_records = true};

static void gid_fields(struct state_stream *s, struct vnic_attach_gid *gid)
{
	state_bytes(s, gid->raw, sizeof(gid->raw));
	state_u8(s, &gid->valid);
	state_u8(s, &gid->v1);
	state_u16(s, &gid->vlan);
}

void process_fields(struct state_stream *s, struct process_record *r)
{
	state_bytes(s, r->mac, sizeof(r->mac));
	state_u16(s, &r->mtu);
	state_u32(s, &r->page_size);
	state_u32(s, &r->last_pd);
	state_u32(s, &r->n_blocks);
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
	state_u64(s, &r->memfd_size);
	state_u64(s, &r->ring_offset);
	state_u64(s, &r->mapped_offset);
	state_u64(s, &r->mapped_address);
	state_u32(s, &r->async_channel);
	state_u32(s, &r->poll_ends);
	state_u64(s, &r->hooks.poll_cq);
	state_u64(s, &r->hooks.post_recv);
	state_u64(s, &r->hooks.post_srq_recv);
	state_u64(s, &r->hooks.start_poll);
	state_u64(s, &r->hooks.next_poll);
	state_u64(s, &r->hooks.end_poll);
}

static void object_fields(struct state_stream *s, struct object_record *r)
{
	state_u32(s, &r->context);
	state_u32(s, &r->handle);
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
	state_u32(s, &r->pd);
	state_u32(s, &r->key);
	state_u64(s, &r->start);
	state_u64(s, &r->length);
	if (s->version >= 3)
		state_bool(s, &r->whole);
	else
		r->whole = true;
}

void mw_fields(struct state_stream *s, struct mw_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->pd);
	state_u32(s, &r->key);
}

void ah_fields(struct state_stream *s, struct ah_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->pd);
	state_bytes(s, r->path.dgid.raw, sizeof(r->path.dgid.raw));
	state_bytes(s, r->path.dmac, sizeof(r->path.dmac));
	state_u8(s, &r->path.sgid_index);
	state_u8(s, &r->path.traffic_class);
	state_u8(s, &r->path.hop_limit);
	state_u8(s, &r->path.sl);
	state_u32(s, &r->path.flow_label);
}

static void ring_fields(struct state_stream *s, struct ring_record *r)
{
	state_u64(s, &r->address);
	state_u64(s, &r->offset);
	state_u32(s, &r->mask);
	state_u32(s, &r->shift);
}

static void work_queue_fields(struct state_stream *s, struct work_queue_record *r)
{
	ring_fields(s, &r->ring);
	state_u32(s, &r->cursor);
	state_u32(s, &r->base);
	state_u32(s, &r->released);
}

void cq_fields(struct state_stream *s, struct cq_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->channel);
	state_u32(s, &r->producer);
	state_u32(s, &r->comp_events);
	state_u32(s, &r->async_events);
	state_bool(s, &r->armed);
	state_bool(s, &r->ex_known);
	ring_fields(s, &r->ring);
}

void srq_fields(struct state_stream *s, struct srq_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->pd);
	state_u32(s, &r->max_sge);
	state_u32(s, &r->async_events);
	work_queue_fields(s, &r->queue);
}

void qp_fields(struct state_stream *s, struct qp_record *r)
{
	object_fields(s, &r->object);
	state_u32(s, &r->qpn);
	state_u32(s, &r->pd);
	state_u32(s, &r->send_cq);
	state_u32(s, &r->recv_cq);
	state_u32(s, &r->srq);
	state_u32(s, &r->async_events);
	state_u8(s, &r->qp_type);
	state_u32(s, &r->send_sge);
	state_u32(s, &r->inline_bytes);
	state_u32(s, &r->recv_sge);
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
	state_bool(s, &r->cloexec);
	state_bool(s, &r->nonblock);
}

void mapping_fields(struct state_stream *s, struct mapping_record *r)
{
	state_u32(s, &r->context);
	state_u64(s, &r->start);
	state_u64(s, &r->length);
	state_u64(s, &r->offset);
	state_bool(s, &r->writable);
}

void ring_bytes_fields(struct state_stream *s, struct ring_bytes_record *r)
{
	state_u32(s, &r->context);
	state_u64(s, &r->offset);
	state_u64(s, &r->size);
}

void rdmacm_fields(struct state_stream *s, struct rdmacm_record *r)
{
	state_u32(s, &r->n_ids);
	state_u32(s, &r->n_states);
}

void rdmacm_id_fields(struct state_stream *s, struct rdmacm_id_record *r)
{
	uint8_t unused;

	state_u32(s, &r->device);
	state_u32(s, &r->number);
	state_u64(s, &r->uid);
	state_u16(s, &r->ps);
	state_u8(s, &r->qp_type);
	state_bool(s, &r->owner);
	if (s->version >= 3)
		state_u32(s, &r->events);
	else
		state_u8(s, &unused);
}
