/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/checkpoint_records.h"

#include "checkpoint/checkpoint.h"

const struct vnic_state_format checkpoint_format = {.name = "urxeproc",
						    .version = URXE_CHECKPOINT_VERSION};

static void gid_fields(struct vnic_state_stream *s, struct vnic_attach_gid *gid)
{
	vnic_state_bytes(s, gid->raw, sizeof(gid->raw));
	vnic_state_u8(s, &gid->valid);
	vnic_state_u8(s, &gid->v1);
	vnic_state_u16(s, &gid->vlan);
}

void process_fields(struct vnic_state_stream *s, struct process_record *r)
{
	vnic_state_bytes(s, r->mac, sizeof(r->mac));
	vnic_state_u16(s, &r->mtu);
	vnic_state_u32(s, &r->page_size);
	vnic_state_u32(s, &r->last_pd);
	vnic_state_u32(s, &r->n_blocks);
	vnic_state_require(s, r->n_blocks && r->n_blocks <= VNIC_LEASES_MAX);
	for (uint32_t i = 0; !s->error && i < r->n_blocks; i++)
		vnic_state_u32(s, &r->blocks[i]);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		gid_fields(s, &r->gids[i]);
	vnic_state_u16(s, &r->link_mtu);
	vnic_state_bool(s, &r->up);
}

void channel_fields(struct vnic_state_stream *s, struct channel_record *r)
{
	vnic_state_u32(s, &r->event_size);
}

void unread_event_fields(struct vnic_state_stream *s, struct event_record *r)
{
	vnic_state_u64(s, &r->element);
	vnic_state_u32(s, &r->type);
}

void context_fields(struct vnic_state_stream *s, struct context_record *r)
{
	vnic_state_u64(s, &r->memfd_size);
	vnic_state_u64(s, &r->ring_offset);
	vnic_state_u64(s, &r->mapped_offset);
	vnic_state_u64(s, &r->mapped_address);
	vnic_state_u32(s, &r->async_channel);
	vnic_state_u32(s, &r->poll_ends);
	vnic_state_u64(s, &r->hooks.poll_cq);
	vnic_state_u64(s, &r->hooks.post_recv);
	vnic_state_u64(s, &r->hooks.post_srq_recv);
	vnic_state_u64(s, &r->hooks.start_poll);
	vnic_state_u64(s, &r->hooks.next_poll);
	vnic_state_u64(s, &r->hooks.end_poll);
}

static void object_fields(struct vnic_state_stream *s, struct object_record *r)
{
	vnic_state_u32(s, &r->context);
	vnic_state_u32(s, &r->handle);
	vnic_state_u64(s, &r->user_handle);
}

void pd_fields(struct vnic_state_stream *s, struct pd_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->number);
}

void mr_fields(struct vnic_state_stream *s, struct mr_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->pd);
	vnic_state_u32(s, &r->key);
	vnic_state_u64(s, &r->start);
	vnic_state_u64(s, &r->length);
	if (s->version >= 3)
		vnic_state_bool(s, &r->whole);
	else
		r->whole = true;
}

void mw_fields(struct vnic_state_stream *s, struct mw_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->pd);
	vnic_state_u32(s, &r->key);
}

void ah_fields(struct vnic_state_stream *s, struct ah_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->pd);
	vnic_state_bytes(s, r->path.dgid.raw, sizeof(r->path.dgid.raw));
	vnic_state_bytes(s, r->path.dmac, sizeof(r->path.dmac));
	vnic_state_u8(s, &r->path.sgid_index);
	vnic_state_u8(s, &r->path.traffic_class);
	vnic_state_u8(s, &r->path.hop_limit);
	vnic_state_u8(s, &r->path.sl);
	vnic_state_u32(s, &r->path.flow_label);
}

static void ring_fields(struct vnic_state_stream *s, struct ring_record *r)
{
	vnic_state_u64(s, &r->address);
	vnic_state_u64(s, &r->offset);
	vnic_state_u32(s, &r->mask);
	vnic_state_u32(s, &r->shift);
}

static void work_queue_fields(struct vnic_state_stream *s, struct work_queue_record *r)
{
	ring_fields(s, &r->ring);
	vnic_state_u32(s, &r->cursor);
	vnic_state_u32(s, &r->base);
	vnic_state_u32(s, &r->released);
}

void cq_fields(struct vnic_state_stream *s, struct cq_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->channel);
	vnic_state_u32(s, &r->producer);
	vnic_state_u32(s, &r->comp_events);
	vnic_state_u32(s, &r->async_events);
	vnic_state_bool(s, &r->armed);
	vnic_state_bool(s, &r->ex_known);
	ring_fields(s, &r->ring);
}

void srq_fields(struct vnic_state_stream *s, struct srq_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->pd);
	vnic_state_u32(s, &r->max_sge);
	vnic_state_u32(s, &r->async_events);
	work_queue_fields(s, &r->queue);
}

void qp_fields(struct vnic_state_stream *s, struct qp_record *r)
{
	object_fields(s, &r->object);
	vnic_state_u32(s, &r->qpn);
	vnic_state_u32(s, &r->pd);
	vnic_state_u32(s, &r->send_cq);
	vnic_state_u32(s, &r->recv_cq);
	vnic_state_u32(s, &r->srq);
	vnic_state_u32(s, &r->async_events);
	vnic_state_u8(s, &r->qp_type);
	vnic_state_u32(s, &r->send_sge);
	vnic_state_u32(s, &r->inline_bytes);
	vnic_state_u32(s, &r->recv_sge);
	work_queue_fields(s, &r->send);
	work_queue_fields(s, &r->receive);
	vnic_state_bool(s, &r->connected);
	vnic_state_bytes(s, r->dgid, sizeof(r->dgid));
	vnic_state_u32(s, &r->remote_qpn);
}

void descriptor_fields(struct vnic_state_stream *s, struct descriptor_record *r)
{
	vnic_state_u32(s, &r->number);
	vnic_state_u8(s, &r->kind);
	vnic_state_u32(s, &r->index);
	vnic_state_bool(s, &r->cloexec);
	vnic_state_bool(s, &r->nonblock);
}

void mapping_fields(struct vnic_state_stream *s, struct mapping_record *r)
{
	vnic_state_u32(s, &r->context);
	vnic_state_u64(s, &r->start);
	vnic_state_u64(s, &r->length);
	vnic_state_u64(s, &r->offset);
	vnic_state_bool(s, &r->writable);
}

void ring_bytes_fields(struct vnic_state_stream *s, struct ring_bytes_record *r)
{
	vnic_state_u32(s, &r->context);
	vnic_state_u64(s, &r->offset);
	vnic_state_u64(s, &r->size);
}

void rdmacm_fields(struct vnic_state_stream *s, struct rdmacm_record *r)
{
	vnic_state_u32(s, &r->n_ids);
	vnic_state_u32(s, &r->n_states);
}

void rdmacm_id_fields(struct vnic_state_stream *s, struct rdmacm_id_record *r)
{
	uint8_t unused;

	vnic_state_u32(s, &r->device);
	vnic_state_u32(s, &r->number);
	vnic_state_u64(s, &r->uid);
	vnic_state_u16(s, &r->ps);
	vnic_state_u8(s, &r->qp_type);
	vnic_state_bool(s, &r->owner);
	if (s->version >= 3)
		vnic_state_u32(s, &r->events);
	else
		vnic_state_u8(s, &unused);
}
