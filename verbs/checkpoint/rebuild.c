/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

#include "adapter/adapter.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_mw.h"
#include "objects/verbs_pd.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "uverbs/ucontext.h"

/* --- Objects by their names in the stream. */

struct object *rebuilt_object(const struct rebuilt *r, enum object_type type, uint32_t context,
			      uint32_t handle)
{
	if (context >= r->image->n[CHECKPOINT_CONTEXT])
		return NULL;
	return handle_find(&r->contexts[context].file->handles, type, handle);
}

static int compare_keys(const void *a, const void *b)
{
	uint32_t of_a = ((const struct rebuilt_key *)a)->key;
	uint32_t of_b = ((const struct rebuilt_key *)b)->key;

	return (of_a > of_b) - (of_a < of_b);
}

static struct object *find_key(const struct rebuilt_key *keys, uint32_t n, uint32_t key)
{
	const struct rebuilt_key wanted = {.key = key};
	const struct rebuilt_key *found =
		n ? bsearch(&wanted, keys, n, sizeof(*keys), compare_keys) : NULL;

	return found ? found->object : NULL;
}

struct object *rebuilt_mr(const struct rebuilt *r, uint32_t key)
{
	return find_key(r->mrs, r->image->n[CHECKPOINT_MR], key);
}

struct object *rebuilt_mw(const struct rebuilt *r, uint32_t key)
{
	return find_key(r->mws, r->image->n[CHECKPOINT_MW], key);
}

/* Sorts the keys. 0, or -EBADMSG: two objects have one key. */
static int sort_keys(struct rebuilt_key *keys, uint32_t n)
{
	if (n)
		qsort(keys, n, sizeof(*keys), compare_keys);
	for (uint32_t i = 1; i < n; i++)
		if (keys[i].key == keys[i - 1].key)
			return -EBADMSG;
	return 0;
}

/* --- Single objects. */

/* The most slots of all handle tables together. The limit is necessary because one small record
 * with a high handle demands a table of up to 256 MiB. */
#define SLOTS_MAX (1u << 25)

static int place_handle(struct rebuilt *r, struct object *object)
{
	struct handle_table *table = &object->file->handles;
	uint32_t before = table->size;
	int rc = handle_place(table, object);

	r->slots += table->size - before;
	if (rc == -EEXIST || rc == -EINVAL)
		return -EBADMSG;
	if (!rc && r->slots > SLOTS_MAX) {
		handle_remove(table, object);
		return -EFBIG;
	}
	return rc;
}

/* Sets *pd, which the object of this record uses. 0, or -EBADMSG: its context has no such PD. */
static int use_pd(const struct rebuilt *r, const struct object_record *record, uint32_t handle,
		  struct pd **pd)
{
	*pd = (struct pd *)rebuilt_object(r, OBJECT_PD, record->context, handle);
	if (!*pd)
		return -EBADMSG;
	(*pd)->object.users++;
	return 0;
}

/* --- Functions that fill a new object from record i of its kind. The object has its handle. */

static int fill_pd(struct rebuilt *r, uint32_t i, struct object *object)
{
	((struct pd *)object)->number = r->image->pds[i].number;
	return 0;
}

static int fill_mr(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct mr_record *record = &r->image->mrs[i];
	struct mr *mr = (struct mr *)object;

	mr->start = record->start;
	mr->length = record->length;
	mr->was_whole = record->whole;
	r->mrs[i] = (struct rebuilt_key){record->key, object};
	return use_pd(r, &record->object, record->pd, &mr->pd);
}

static int fill_mw(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct mw_record *record = &r->image->mws[i];

	r->mws[i] = (struct rebuilt_key){record->key, object};
	return use_pd(r, &record->object, record->pd, &((struct mw *)object)->pd);
}

static int fill_ah(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct ah_record *record = &r->image->ahs[i];
	struct ah *ah = (struct ah *)object;

	ah->path = record->path;
	return use_pd(r, &record->object, record->pd, &ah->pd);
}

/* The mapping that has the address; NULL: none. */
static const struct mapping_record *mapping_of(const struct image *image, uint32_t context,
					       uint64_t address)
{
	uint32_t low = 0, high = image->n[CHECKPOINT_MAPPING];

	/* The mappings are sorted by context and address. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct mapping_record *m = &image->mappings[middle];

		if (m->context < context ||
		    (m->context == context && m->start + m->length <= address))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == image->n[CHECKPOINT_MAPPING] || image->mappings[low].context != context ||
	    image->mappings[low].start > address)
		return NULL;
	return &image->mappings[low];
}

/* Whether a saved writable mapping shows the memfd's bytes from `offset` on in the `size` bytes
 * from `address` on. */
static bool is_mapped(const struct image *image, uint32_t context, uint64_t address,
		      uint64_t offset, uint64_t size)
{
	const struct mapping_record *m = mapping_of(image, context, address);

	return m && m->writable && size <= m->start + m->length - address &&
	       m->offset + (address - m->start) == offset;
}

/*
 * Finds the ring in one of the mappings, which placement_map has placed. 0, also if the record has
 * no ring; -EBADMSG: no mapping has the ring.
 */
static int find_ring(const struct rebuilt *r, uint32_t context, const struct ring_record *record,
		     struct queue *ring)
{
	*ring = (struct queue){
		.offset = record->offset, .mask = record->mask, .shift = record->shift};
	if (!record->address)
		return 0;
	if (!is_mapped(r->image, context, record->address, record->offset, queue_bytes(ring)))
		return -EBADMSG;
	ring->buf = (struct rxe_queue_buf *)(uintptr_t)record->address;
	return 0;
}

static int find_work_queue(const struct rebuilt *r, uint32_t context,
			   const struct work_queue_record *record, struct work_queue *wq)
{
	*wq = (struct work_queue){
		.cursor = record->cursor, .base = record->base, .released = record->released};
	return find_ring(r, context, &record->ring, &wq->ring);
}

static int fill_cq(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct cq_record *record = &r->image->cqs[i];
	struct cq *cq = (struct cq *)object;

	cq->producer = record->producer;
	cq->comp_events = record->comp_events;
	cq->async_events = record->async_events;
	cq->armed = record->armed;
	cq->ex_known = record->ex_known;
	if (record->channel != NO_CHANNEL) {
		cq->channel = r->channels[record->channel].channel;
		comp_channel_use(cq->channel);
	}
	if (find_ring(r, record->object.context, &record->ring, &cq->ring))
		return -EBADMSG;
	/* The stream does not tell which entries are unread, and whether their events were sent.
	 * All count as new: one event too many does no harm. */
	cq->n_completions = cq->n_solicited = queue_capacity(&cq->ring);
	return 0;
}

static int fill_srq(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct srq_record *record = &r->image->srqs[i];
	struct srq *srq = (struct srq *)object;
	int rc = use_pd(r, &record->object, record->pd, &srq->pd);

	srq->recv.max_sge = record->max_sge;
	srq->async_events = record->async_events;
	return rc ? rc : find_work_queue(r, record->object.context, &record->queue, &srq->recv.wq);
}

static int join_qp(const struct rebuilt *r, const struct qp_record *record, struct qp *qp)
{
	uint32_t context = record->object.context;

	qp->send_cq = (struct cq *)rebuilt_object(r, OBJECT_CQ, context, record->send_cq);
	qp->recv_cq = (struct cq *)rebuilt_object(r, OBJECT_CQ, context, record->recv_cq);
	qp->srq = (struct srq *)rebuilt_object(r, OBJECT_SRQ, context, record->srq);
	if (!qp->send_cq || !qp->recv_cq || (record->srq && !qp->srq))
		return -EBADMSG;
	qp->send_cq->object.users++;
	qp->recv_cq->object.users++;
	if (qp->srq)
		qp->srq->object.users++;
	return use_pd(r, &record->object, record->pd, &qp->pd);
}

static int fill_qp(struct rebuilt *r, uint32_t i, struct object *object)
{
	const struct qp_record *record = &r->image->qps[i];
	struct qp *qp = (struct qp *)object;
	int rc;

	qp->qpn = record->qpn;
	qp->sends_posted = true;
	qp->limits.qp_type = record->qp_type;
	qp->limits.max_sge = record->send_sge;
	qp->limits.max_inline = record->inline_bytes;
	qp->async_events = record->async_events;
	qp->recv.max_sge = record->recv_sge;
	rc = find_work_queue(r, record->object.context, &record->send, &qp->sq);
	if (!rc)
		rc = find_work_queue(r, record->object.context, &record->receive, &qp->recv.wq);
	return rc ? rc : join_qp(r, record, qp);
}

/* --- All objects. */

/* Each kind of object follows the kinds that it refers to. */
static const struct object_kind {
	enum checkpoint_record kind;
	enum object_type type;
	size_t size, record_size;
	int (*fill)(struct rebuilt *r, uint32_t i, struct object *object);
} object_kinds[] = {
	{CHECKPOINT_PD, OBJECT_PD, sizeof(struct pd), sizeof(struct pd_record), fill_pd},
	{CHECKPOINT_MR, OBJECT_MR, sizeof(struct mr), sizeof(struct mr_record), fill_mr},
	{CHECKPOINT_MW, OBJECT_MW, sizeof(struct mw), sizeof(struct mw_record), fill_mw},
	{CHECKPOINT_AH, OBJECT_AH, sizeof(struct ah), sizeof(struct ah_record), fill_ah},
	{CHECKPOINT_CQ, OBJECT_CQ, sizeof(struct cq), sizeof(struct cq_record), fill_cq},
	{CHECKPOINT_SRQ, OBJECT_SRQ, sizeof(struct srq), sizeof(struct srq_record), fill_srq},
	{CHECKPOINT_QP, OBJECT_QP, sizeof(struct qp), sizeof(struct qp_record), fill_qp},
};

/* Records of objects begin with struct object_record, and objects with struct object. */
#define BEGINS_WITH_OBJECT(name)                                      \
	_Static_assert(offsetof(struct name##_record, object) == 0 && \
			       offsetof(struct name, object) == 0,    \
		       #name)
BEGINS_WITH_OBJECT(pd);
BEGINS_WITH_OBJECT(mr);
BEGINS_WITH_OBJECT(mw);
BEGINS_WITH_OBJECT(ah);
BEGINS_WITH_OBJECT(cq);
BEGINS_WITH_OBJECT(srq);
BEGINS_WITH_OBJECT(qp);

/* Makes the object of record i of the kind, with its saved handle in its context. */
static int make_object(struct rebuilt *r, const struct object_kind *kind, uint32_t i)
{
	const uint8_t *records = r->image->lists[kind->kind];
	/* The first member of each of these records. */
	const struct object_record *record = (const void *)(records + i * kind->record_size);
	/* A queue pair begins at a cache line. The size has to be a multiple of the alignment. */
	struct object *object = aligned_alloc(URXE_CACHE_LINE, (kind->size + URXE_CACHE_LINE - 1) &
								       -(size_t)URXE_CACHE_LINE);
	int rc;

	if (!object)
		return -ENOMEM;
	memset(object, 0, kind->size);
	object->type = kind->type;
	object->handle = record->handle;
	object->user_handle = record->user_handle;
	object->file = r->contexts[record->context].file;
	rc = place_handle(r, object);
	if (!rc)
		return kind->fill(r, i, object);
	free(object);
	return rc;
}

static int make_objects(struct rebuilt *r, const struct object_kind *kind)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->image->n[kind->kind]; i++)
		rc = make_object(r, kind, i);
	return rc;
}

/* --- Channels and contexts. */

static void bind_channel(struct comp_channel *channel, struct uverbs_file *file)
{
	if (!channel->file)
		comp_channel_bind(channel, file);
}

/*
 * Binds completion channels to contexts. The image tells the context of a channel only by a CQ that
 * uses it, or if there is only one context. Any other channel gets its context from the first CQ
 * that the program creates for it (cmd_create_cq).
 */
static void bind_channels(const struct rebuilt *r)
{
	const struct image *image = r->image;

	for (uint32_t i = 0; i < image->n[CHECKPOINT_CQ]; i++) {
		const struct cq_record *cq = &image->cqs[i];

		if (cq->channel != NO_CHANNEL)
			bind_channel(r->channels[cq->channel].channel,
				     r->contexts[cq->object.context].file);
	}
	for (uint32_t i = 0; i < image->n[CHECKPOINT_CHANNEL]; i++) {
		struct comp_channel *channel = r->channels[i].channel;

		if (channel->event_size != sizeof(struct ib_uverbs_comp_event_desc))
			continue;
		if (image->n[CHECKPOINT_CONTEXT] == 1)
			bind_channel(channel, r->contexts[0].file);
		channel->context_unknown = !channel->file;
	}
}

/* Puts the saved unread events into their channel: into its socket and, when the socket takes no
 * more, into its list of waiting events. Both keep the order. */
static void send_events(const struct rebuilt *r, const struct image_events *events)
{
	for (uint32_t i = 0; i < events->n; i++) {
		const struct comp_channel_event event = {.element = events->events[i].element,
							 .type = events->events[i].type};

		comp_channel_send(r->channels[events->channel].channel, &event);
	}
}

static int make_channel(struct rebuilt *r, uint32_t i)
{
	const uint32_t event_size = r->image->channels[i].event_size;
	struct rebuilt_channel *channel = &r->channels[i];

	return comp_channel_create(event_size,
				   event_size == sizeof(struct ib_uverbs_async_event_desc), NULL,
				   &channel->channel, &channel->fd);
}

/* Whether RLIMIT_FSIZE permits the size: a larger memfd would raise SIGXFSZ. */
static bool is_size_allowed(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
}

static int make_context(struct rebuilt *r, uint32_t i)
{
	const struct context_record *record = &r->image->contexts[i];
	struct rebuilt_context *context = &r->contexts[i];
	struct uverbs_file *file = uverbs_file_alloc();
	int rc;

	if (!file)
		return -ENOMEM;
	file->live = false;
	file->queues = (struct ring_space){
		.top = record->ring_offset,
		.offset = record->ring_offset,
		.mapped = record->mapped_offset,
		.base = (uint8_t *)(uintptr_t)record->mapped_address,
	};
	file->poll_ends = (int)record->poll_ends;
	context->memfd = is_size_allowed(record->memfd_size)
				 ? uverbs_file_memfd(O_CLOEXEC, record->memfd_size)
				 : -EFBIG;
	rc = context->memfd < 0 ? context->memfd : fd_install(context->memfd, &file->fd);
	if (rc) {
		if (context->memfd >= 0)
			close(context->memfd);
		context->memfd = -1;
		uverbs_file_free(file);
		return rc;
	}
	context->file = file;
	if (record->async_channel != NO_CHANNEL) {
		file->async = r->channels[record->async_channel].channel;
		comp_channel_use(file->async);
	}
	return 0;
}

static int write_page(int memfd, uint64_t offset, const uint8_t *bytes)
{
	ssize_t written = pwrite(memfd, bytes, RING_PAGE, (off_t)offset);

	if (written < 0)
		return -errno;
	return written == (ssize_t)RING_PAGE ? 0 : -ENOSPC;
}

static int write_ring(const struct rebuilt *r, const struct image_ring *ring)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < ring->n_pages; i++) {
		const struct image_page page = image_page(ring, i);

		rc = write_page(r->contexts[ring->record.context].memfd,
				ring->record.offset + (uint64_t)page.index * RING_PAGE, page.bytes);
	}
	return rc;
}

/* --- All. */

static bool allocate_lists(struct rebuilt *r)
{
	const uint32_t *n = r->image->n;

	r->channels = calloc((size_t)n[CHECKPOINT_CHANNEL] + 1, sizeof(*r->channels));
	r->contexts = calloc((size_t)n[CHECKPOINT_CONTEXT] + 1, sizeof(*r->contexts));
	r->devices = calloc((size_t)n[CHECKPOINT_RDMACM] + 1, sizeof(*r->devices));
	r->mrs = calloc((size_t)n[CHECKPOINT_MR] + 1, sizeof(*r->mrs));
	r->mws = calloc((size_t)n[CHECKPOINT_MW] + 1, sizeof(*r->mws));
	if (!r->channels || !r->contexts || !r->devices || !r->mrs || !r->mws)
		return false;
	for (uint32_t i = 0; i < n[CHECKPOINT_RDMACM]; i++)
		r->devices[i].fd = -1;
	for (uint32_t i = 0; i < n[CHECKPOINT_CHANNEL]; i++)
		r->channels[i].fd = -1;
	for (uint32_t i = 0; i < n[CHECKPOINT_CONTEXT]; i++)
		r->contexts[i].memfd = -1;
	return true;
}

int rebuild_contexts(struct rebuilt *r, const struct image *image)
{
	int rc = 0;

	*r = (struct rebuilt){.image = image, .fork_generation = adapter_fork_generation};
	if (!allocate_lists(r))
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_CHANNEL]; i++)
		rc = make_channel(r, i);
	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_CONTEXT]; i++)
		rc = make_context(r, i);
	return rc;
}

/* 0, or -EBADMSG: the context's mapping for further rings, which only streams of earlier versions
 * have, is in no record of a mapping. */
static int check_space(const struct rebuilt *r, uint32_t context)
{
	const struct context_record *c = &r->image->contexts[context];
	uint64_t length = c->ring_offset - c->mapped_offset;

	return !length || is_mapped(r->image, context, c->mapped_address, c->mapped_offset, length)
		       ? 0
		       : -EBADMSG;
}

static void finish_contexts(const struct rebuilt *r)
{
	const struct image *image = r->image;

	for (uint32_t i = 0; i < image->n[CHECKPOINT_CONTEXT]; i++)
		handle_find_free(&r->contexts[i].file->handles);
	adapter_lock();
	bind_channels(r);
	for (uint32_t i = 0; i < image->n[CHECKPOINT_EVENTS]; i++)
		send_events(r, &image->events[i]);
	adapter_unlock();
}

int rebuild_objects(struct rebuilt *r)
{
	const struct image *image = r->image;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_CONTEXT]; i++)
		rc = check_space(r, i);
	for (unsigned int i = 0; !rc && i < sizeof(object_kinds) / sizeof(object_kinds[0]); i++)
		rc = make_objects(r, &object_kinds[i]);
	if (!rc)
		rc = sort_keys(r->mrs, image->n[CHECKPOINT_MR]);
	if (!rc)
		rc = sort_keys(r->mws, image->n[CHECKPOINT_MW]);
	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_RING]; i++)
		rc = write_ring(r, &image->rings[i]);
	if (!rc)
		finish_contexts(r);
	return rc;
}

/* --- Cleanup after an error. */

static void free_object(struct object *object)
{
	if (object->type == OBJECT_CQ && ((struct cq *)object)->channel)
		comp_channel_put(((struct cq *)object)->channel);
	handle_remove(&object->file->handles, object);
	free(object);
}

static void free_objects(struct uverbs_file *file)
{
	for (enum object_type type = OBJECT_PD; type <= OBJECT_AH; type++) {
		struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(&file->handles, type, &at)))
			free_object(object);
	}
	handle_table_free(&file->handles);
	file->queues = (struct ring_space){0};
	comp_channels_unbind(file);
	if (file->async)
		comp_channel_put(file->async);
	file->async = NULL;
}

/* Closes a temporary descriptor; the last descriptor frees its object. */
static void close_fd(int *fd)
{
	if (*fd < 0)
		return;
	fd_remove(*fd);
	close(*fd);
	*fd = -1;
}

void rebuild_free(struct rebuilt *r)
{
	/* A child that a signal handler has forked has set handle_counts to 0. */
	uint32_t counts_of_parent[OBJECT_TYPES] = {0};

	for (uint32_t i = 0; r->contexts && i < r->image->n[CHECKPOINT_CONTEXT]; i++) {
		struct uverbs_file *file = r->contexts[i].file;

		if (!file)
			continue;
		adapter_lock();
		if (adapter_is_parents(r->fork_generation))
			file->handles.counts = counts_of_parent;
		free_objects(file);
		adapter_unlock();
		close_fd(&r->contexts[i].memfd);
	}
	for (uint32_t i = 0; r->channels && i < r->image->n[CHECKPOINT_CHANNEL]; i++)
		close_fd(&r->channels[i].fd);
	for (uint32_t i = 0; r->devices && i < r->image->n[CHECKPOINT_RDMACM]; i++)
		close_fd(&r->devices[i].fd);
	rebuild_done(r);
}

void rebuild_done(struct rebuilt *r)
{
	free(r->channels);
	free(r->contexts);
	free(r->devices);
	free(r->mrs);
	free(r->mws);
	*r = (struct rebuilt){0};
}
