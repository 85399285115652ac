/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include <cm/attach_protocol.h>

#include "checkpoint/image/distinct.h"
#include "queues/librxe_ring.h"

/* Limits of the saved numbers: of descriptors, as the table of process/emulated_fd.c has, and of
 * handles, as objects/handle.c has. */
#define DESCRIPTORS_MAX (1u << 22)
#define HANDLES_MAX     (1u << 24)
#define SHIFT_MAX       16 /* log2 of the bytes of a ring's element */
#define MEMFD_MAX       (UINT64_C(1) << 46)
#define ADDRESS_MAX     (UINT64_C(1) << 57)

/* --- Checks of single records. */

static bool is_page_aligned(const struct image *image, uint64_t n)
{
	return n % image->process.page_size == 0;
}

static void check_process(struct state_stream *s, const struct process_record *r)
{
	state_require(s, r->page_size >= 4096 && !(r->page_size & (r->page_size - 1)));
	for (uint32_t i = 0; i < r->n_blocks && !s->error; i++)
		state_require(s, r->blocks[i] % VNIC_LEASE_QPNS == 0 && r->blocks[i] &&
					 r->blocks[i] < 0xfff000);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		state_require(s, r->gids[i].valid <= 1 && r->gids[i].v1 <= 1 &&
					 r->gids[i].vlan < 4096);
}

static void check_channel(struct state_stream *s, const struct image *image,
			  const struct channel_record *r)
{
	(void)image;
	state_require(s, r->event_size == sizeof(struct ib_uverbs_comp_event_desc) ||
				 r->event_size == sizeof(struct ib_uverbs_async_event_desc));
}

static bool is_channel(const struct image *image, uint32_t index, uint32_t event_size)
{
	return index < image->n[CHECKPOINT_CHANNEL] &&
	       image->channels[index].event_size == event_size;
}

static void check_context(struct state_stream *s, const struct image *image,
			  const struct context_record *r)
{
	state_require(s, r->memfd_size <= MEMFD_MAX && r->ring_offset <= r->memfd_size);
	state_require(s, is_page_aligned(image, r->memfd_size) &&
				 is_page_aligned(image, r->ring_offset) &&
				 is_page_aligned(image, r->mapped_offset) &&
				 r->mapped_offset <= r->ring_offset);
	state_require(s, r->async_channel == NO_CHANNEL ||
				 is_channel(image, r->async_channel,
					    sizeof(struct ib_uverbs_async_event_desc)));
	state_require(s, r->poll_ends <= 2);
}

static void check_object(struct state_stream *s, const struct image *image,
			 const struct object_record *r)
{
	state_require(s, r->context < image->n[CHECKPOINT_CONTEXT] && r->handle &&
				 r->handle <= HANDLES_MAX);
}

static void check_ring(struct state_stream *s, const struct image *image, uint32_t context,
		       const struct ring_record *r, uint32_t element)
{
	const struct context_record *c;
	uint64_t bytes;

	state_require(s, r->address && context < image->n[CHECKPOINT_CONTEXT]);
	state_require(s, r->shift >= 6 && r->shift <= SHIFT_MAX && r->mask < 1u << 31 &&
				 !(r->mask & (r->mask + 1)));
	if (s->error)
		return;
	c = &image->contexts[context];
	bytes = (((uint64_t)r->mask + 1) << r->shift) + sizeof(struct rxe_queue_buf);
	state_require(s, element <= 1u << r->shift && bytes <= UINT32_MAX);
	state_require(s, is_page_aligned(image, r->offset) && r->offset >= c->ring_offset &&
				 r->offset <= c->memfd_size && bytes <= c->memfd_size - r->offset);
}

static void check_pd(struct state_stream *s, const struct image *image, const struct pd_record *r)
{
	check_object(s, image, &r->object);
	state_require(s, r->number <= image->process.last_pd);
}

static void check_mr(struct state_stream *s, const struct image *image, const struct mr_record *r)
{
	uint64_t end;

	check_object(s, image, &r->object);
	state_require(s, (r->length || !is_page_aligned(image, r->start)) &&
				 !__builtin_add_overflow(r->start, r->length, &end) &&
				 end <= ADDRESS_MAX);
}

static void check_mw(struct state_stream *s, const struct image *image, const struct mw_record *r)
{
	check_object(s, image, &r->object);
}

static void check_ah(struct state_stream *s, const struct image *image, const struct ah_record *r)
{
	check_object(s, image, &r->object);
	state_require(s, r->path.sgid_index < VNIC_ATTACH_GIDS && r->path.sl < 8 &&
				 r->path.flow_label <= 0xfffff);
}

static void check_cq(struct state_stream *s, const struct image *image, const struct cq_record *r)
{
	check_object(s, image, &r->object);
	check_ring(s, image, r->object.context, &r->ring, sizeof(struct ib_uverbs_wc));
	state_require(
		s, r->channel == NO_CHANNEL ||
			   is_channel(image, r->channel, sizeof(struct ib_uverbs_comp_event_desc)));
}

static void check_srq(struct state_stream *s, const struct image *image, const struct srq_record *r)
{
	check_object(s, image, &r->object);
	state_require(s, r->max_sge && r->max_sge <= URXE_MAX_SGE);
	check_ring(s, image, r->object.context, &r->queue.ring, queue_receive_bytes(r->max_sge));
}

static void check_qp(struct state_stream *s, const struct image *image, const struct qp_record *r)
{
	uint32_t payload = r->send_sge * (uint32_t)sizeof(struct rxe_sge);

	check_object(s, image, &r->object);
	state_require(s, r->qpn <= 0xffffff && r->remote_qpn <= 0xffffff &&
				 r->send_sge <= URXE_MAX_SGE && r->recv_sge <= URXE_MAX_SGE &&
				 r->inline_bytes <= URXE_MAX_INLINE);
	state_require(s, r->qp_type == URXE_QPT_RC || r->qp_type == URXE_QPT_UC ||
				 r->qp_type == URXE_QPT_UD);
	if (payload < r->inline_bytes)
		payload = r->inline_bytes;
	check_ring(s, image, r->object.context, &r->send.ring,
		   (uint32_t)sizeof(struct rxe_send_wqe) + payload);
	state_require(s, !r->receive.ring.address == !!r->srq);
	if (!r->srq)
		check_ring(s, image, r->object.context, &r->receive.ring,
			   queue_receive_bytes(r->recv_sge));
}

static void check_descriptor(struct state_stream *s, const struct image *image,
			     const struct descriptor_record *r)
{
	uint32_t n = 1;

	state_require(s, r->kind <= DESCRIPTOR_RDMACM && r->number < DESCRIPTORS_MAX);
	if (r->kind == DESCRIPTOR_CONTEXT)
		n = image->n[CHECKPOINT_CONTEXT];
	else if (r->kind == DESCRIPTOR_CHANNEL)
		n = image->n[CHECKPOINT_CHANNEL];
	else if (image->n[CHECKPOINT_RDMACM])
		n = image->n[CHECKPOINT_RDMACM];
	state_require(s, r->index < n);
}

static void check_mapping(struct state_stream *s, const struct image *image,
			  const struct mapping_record *r)
{
	uint64_t end;

	state_require(s, r->context < image->n[CHECKPOINT_CONTEXT] && r->length);
	if (s->error)
		return;
	state_require(s, is_page_aligned(image, r->start) && r->start &&
				 is_page_aligned(image, r->length) &&
				 is_page_aligned(image, r->offset));
	state_require(s, !__builtin_add_overflow(r->start, r->length, &end) && end <= ADDRESS_MAX);
	state_require(s, r->offset <= image->contexts[r->context].memfd_size &&
				 r->length <= image->contexts[r->context].memfd_size - r->offset);
	/* Requires that the mappings are sorted, and that those of one context do not overlap. */
	if (r == image->mappings)
		return;
	state_require(s, r->context > r[-1].context || (r->context == r[-1].context &&
							r->start >= r[-1].start + r[-1].length));
}

static void check_rdmacm(struct state_stream *s, const struct image *image,
			 const struct rdmacm_record *r)
{
	state_require(s, r->n_ids <= image->n[CHECKPOINT_RDMACM_ID] &&
				 r->n_states <= image->n[CHECKPOINT_RDMACM_STATE]);
}

static void check_rdmacm_id(struct state_stream *s, const struct image *image,
			    const struct rdmacm_id_record *r)
{
	state_require(s, r->device < image->n[CHECKPOINT_RDMACM] && r->number <= UINT16_MAX);
}

/* --- Records with lists. */

static void read_events(struct state_stream *s, const struct image *image, struct image_events *e)
{
	state_u32s(s, &e->channel, &e->n);
	state_require(s, e->channel < image->n[CHECKPOINT_CHANNEL] && e->n <= state_left(s) / 12);
	if (s->error || !e->n)
		return;
	e->events = calloc(e->n, sizeof(*e->events));
	if (!e->events)
		state_fail(s, -ENOMEM);
	for (uint32_t i = 0; !s->error && i < e->n; i++)
		unread_event_fields(s, &e->events[i]);
}

#define PAGE_BYTES (4u + RING_PAGE)

struct image_page image_page(const struct image_ring *ring, uint32_t i)
{
	const uint8_t *at = ring->pages.at + (size_t)i * PAGE_BYTES;

	return (struct image_page){
		.index = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
			 (uint32_t)at[3] << 24,
		.bytes = at + 4,
	};
}

static void read_ring(struct state_stream *s, const struct image *image, struct image_ring *ring)
{
	const struct ring_bytes_record *r = &ring->record;

	ring_bytes_fields(s, &ring->record);
	state_u32(s, &ring->n_pages);
	state_require(s, r->context < image->n[CHECKPOINT_CONTEXT] && r->size <= UINT32_MAX &&
				 r->size % RING_PAGE == 0 && is_page_aligned(image, r->offset));
	state_require(s, (uint64_t)ring->n_pages * PAGE_BYTES == state_left(s));
	if (s->error)
		return;
	state_require(s, r->offset <= image->contexts[r->context].memfd_size &&
				 r->size <= image->contexts[r->context].memfd_size - r->offset);
	ring->pages.length = state_left(s);
	ring->pages.at = state_take(s, ring->pages.length);
	for (uint32_t i = 0; !s->error && i < ring->n_pages; i++)
		state_require(s, image_page(ring, i).index < r->size / RING_PAGE);
}

static void read_rdmacm_state(struct state_stream *s, const struct image *image,
			      struct image_rdmacm_state *state)
{
	state_u32(s, &state->device);
	state_require(s, state->device < image->n[CHECKPOINT_RDMACM]);
	state->bytes.length = state_left(s);
	state->bytes.at = state_take(s, state->bytes.length);
	state_require(s, state->bytes.length && state->bytes.length <= CM_ATTACH_BYTES);
}

/* --- The stream. */

static uint32_t end_kind(const struct state_stream *s)
{
	return s->version == 1 ? CHECKPOINT_END_1 : CHECKPOINT_END;
}

/* Counts the records of each kind, and requires that they are in the order of their kinds. */
static void count_records(struct state_stream *s, uint32_t n[CHECKPOINT_KINDS])
{
	uint32_t last = 0, kind;

	while ((kind = state_next_record(s))) {
		state_require(s, kind >= last && kind <= end_kind(s));
		if (s->error)
			return;
		state_begin(s, kind);
		state_take(s, state_left(s));
		state_end(s);
		n[kind == end_kind(s) ? CHECKPOINT_END : kind]++;
		last = kind;
	}
	state_require(s, s->at == s->end && n[CHECKPOINT_PROCESS] == 1 &&
				 n[CHECKPOINT_ENGINE] == 1 && n[CHECKPOINT_END] == 1 &&
				 n[CHECKPOINT_CONTEXT]);
}

static void *make_list(struct state_stream *s, struct image *image, enum checkpoint_record kind,
		       size_t size)
{
	image->lists[kind] = s->error ? NULL : calloc((size_t)image->n[kind] + 1, size);
	if (!image->lists[kind])
		state_fail(s, -ENOMEM);
	return image->lists[kind];
}

#define READ_ALL(s, image, list, kind, name)                               \
	(image)->list = make_list(s, image, kind, sizeof(*(image)->list)); \
	for (uint32_t i = 0; !(s)->error && i < (image)->n[kind]; i++) {   \
		state_begin(s, kind);                                      \
		name##_fields(s, &(image)->list[i]);                       \
		check_##name(s, image, &(image)->list[i]);                 \
		state_end(s);                                              \
	}

#define READ_LISTS(s, image, list, kind, name)                             \
	(image)->list = make_list(s, image, kind, sizeof(*(image)->list)); \
	for (uint32_t i = 0; !(s)->error && i < (image)->n[kind]; i++) {   \
		state_begin(s, kind);                                      \
		read_##name(s, image, &(image)->list[i]);                  \
		state_end(s);                                              \
	}

static void read_engine(struct state_stream *s, struct image *image)
{
	state_begin(s, CHECKPOINT_ENGINE);
	image->engine.length = state_left(s);
	image->engine.at = state_take(s, image->engine.length);
	state_end(s);
}

/* Requires that the stream has as many IDs and states as all devices together announce. */
static void count_rdmacm(struct state_stream *s, const struct image *image)
{
	uint64_t ids = 0, states = 0;

	for (uint32_t i = 0; !s->error && i < image->n[CHECKPOINT_RDMACM]; i++) {
		ids += image->rdmacms[i].n_ids;
		states += image->rdmacms[i].n_states;
	}
	state_require(s, ids == image->n[CHECKPOINT_RDMACM_ID] &&
				 states == image->n[CHECKPOINT_RDMACM_STATE]);
}

static void read_records(struct state_stream *s, struct image *image)
{
	state_begin(s, CHECKPOINT_PROCESS);
	process_fields(s, &image->process);
	check_process(s, &image->process);
	state_end(s);
	READ_ALL(s, image, channels, CHECKPOINT_CHANNEL, channel)
	READ_ALL(s, image, contexts, CHECKPOINT_CONTEXT, context)
	READ_ALL(s, image, pds, CHECKPOINT_PD, pd)
	READ_ALL(s, image, mrs, CHECKPOINT_MR, mr)
	READ_ALL(s, image, mws, CHECKPOINT_MW, mw)
	READ_ALL(s, image, ahs, CHECKPOINT_AH, ah)
	READ_ALL(s, image, cqs, CHECKPOINT_CQ, cq)
	READ_ALL(s, image, srqs, CHECKPOINT_SRQ, srq)
	READ_ALL(s, image, qps, CHECKPOINT_QP, qp)
	read_engine(s, image);
	READ_ALL(s, image, descriptors, CHECKPOINT_DESCRIPTOR, descriptor)
	READ_ALL(s, image, mappings, CHECKPOINT_MAPPING, mapping)
	READ_LISTS(s, image, events, CHECKPOINT_EVENTS, events)
	READ_LISTS(s, image, rings, CHECKPOINT_RING, ring)
	READ_ALL(s, image, rdmacms, CHECKPOINT_RDMACM, rdmacm)
	READ_ALL(s, image, rdmacm_ids, CHECKPOINT_RDMACM_ID, rdmacm_id)
	READ_LISTS(s, image, rdmacm_states, CHECKPOINT_RDMACM_STATE, rdmacm_state)
	count_rdmacm(s, image);
	image_require_distinct(s, image);
	state_begin(s, end_kind(s));
	state_end(s);
}

int image_read(struct image *image, const uint8_t *stream, size_t length)
{
	struct state_stream s;

	memset(image, 0, sizeof(*image));
	stream_begin_restore(&s, &checkpoint_format, stream, length);
	count_records(&s, image->n);
	if (!s.error) {
		stream_begin_restore(&s, &checkpoint_format, stream, length);
		read_records(&s, image);
	}
	if (s.error)
		image_free(image);
	return s.error;
}

void image_free(struct image *image)
{
	for (uint32_t i = 0; image->events && i < image->n[CHECKPOINT_EVENTS]; i++)
		free(image->events[i].events);
	for (uint32_t kind = 0; kind < CHECKPOINT_KINDS; kind++)
		free(image->lists[kind]);
	memset(image, 0, sizeof(*image));
}
