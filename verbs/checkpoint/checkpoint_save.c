/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/checkpoint_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxe/state.h>

#include "adapter/adapter.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/rdmacm_freeze.h"
#include "checkpoint/ring_mapping.h"
#include "memory/uaccess.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_mw.h"
#include "objects/verbs_pd.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "rdmacm/ids.h"
#include "rdmacm/rdmacm_file.h"

/* Bytes of the buffer beyond the stream's length in save_prepare(): until save_write() the program
 * may duplicate descriptors, and events may come. */
#define SPARE_ROOM 65536u

/* --- Objects by their index in the stream. */

static uint32_t context_index(const struct process_save *save, const struct uverbs_file *file)
{
	uint32_t i = 0;

	while (i < save->n_files && save->files[i] != file)
		i++;
	return i;
}

static uint32_t channel_index(const struct process_save *save, const struct comp_channel *channel)
{
	uint32_t i = 0;

	while (i < save->n_channels && save->channels[i] != channel)
		i++;
	return channel ? i : NO_CHANNEL;
}

static int add_file(struct process_save *save, struct uverbs_file *file)
{
	struct uverbs_file **files =
		realloc(save->files, (save->n_files + 1) * sizeof(struct uverbs_file *));

	if (!files)
		return -ENOMEM;
	ring_space_unmap_room(&file->queues);
	save->files = files;
	save->files[save->n_files++] = file;
	return 0;
}

static int add_channel(struct process_save *save, struct comp_channel *channel)
{
	struct comp_channel **channels;

	if (!channel || channel_index(save, channel) < save->n_channels)
		return 0;
	channels = realloc(save->channels, (save->n_channels + 1) * sizeof(struct comp_channel *));
	if (!channels)
		return -ENOMEM;
	save->channels = channels;
	save->channels[save->n_channels++] = channel;
	return 0;
}

/* Adds the channel of the context's asynchronous events, and the channels of its CQs. The program
 * may have closed all descriptors of such a channel, so add_descriptor() may not find it. 0 or
 * -ENOMEM. */
static int add_channels_of(struct process_save *save, const struct uverbs_file *file)
{
	struct object *object;
	uint32_t at = 0;
	int rc = add_channel(save, file->async);

	while (!rc && (object = handle_next(&file->handles, OBJECT_CQ, &at)))
		rc = add_channel(save, ((struct cq *)object)->channel);
	return rc;
}

static int add_descriptor(struct process_save *save, int fd)
{
	struct fd_object *object = fd_find(fd);

	if (!object)
		return 0;
	if (object->kind == FD_RDMACM)
		return 0;
	if (object->kind == FD_CHANNEL)
		return add_channel(save, (struct comp_channel *)object);
	if (((struct uverbs_file *)object)->live)
		return 0;
	return checkpoint_fail(-EOPNOTSUPP,
			       "descriptor %d: a device that the parent process had opened", fd);
}

static int find_objects(struct process_save *save)
{
	struct uverbs_file *file;
	int rc = 0;

	LIST_FOREACH(file, &adapter.files, link)
	{
		rc = rc ? rc : add_file(save, file);
		rc = rc ? rc : add_channels_of(save, file);
	}
	for (int fd = fd_next(0); !rc && fd >= 0; fd = fd_next(fd + 1))
		rc = add_descriptor(save, fd);
	return rc;
}

/* --- Records of objects. */

static struct object_record object_record(const struct process_save *save,
					  const struct object *object)
{
	return (struct object_record){
		.context = context_index(save, object->file),
		.handle = object->handle,
		.user_handle = object->user_handle,
	};
}

static struct ring_record ring_record(const struct queue *ring)
{
	return (struct ring_record){
		.address = (uintptr_t)ring->buf,
		.offset = ring->offset,
		.mask = ring->mask,
		.shift = ring->shift,
	};
}

static struct work_queue_record work_queue_record(const struct work_queue *wq)
{
	return (struct work_queue_record){
		.ring = ring_record(&wq->ring),
		.cursor = wq->cursor,
		.base = wq->base,
		.released = wq->released,
	};
}

static void write_pd(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	struct pd_record r = {.object = object_record(save, object),
			      .number = ((const struct pd *)object)->number};

	pd_fields(s, &r);
}

/* Whether the region's bytes are mapped; those that this library has seen unmapped do not count. */
static bool is_whole(const struct urxe_mr *mr)
{
	struct urxe_extent bytes;
	uint32_t i = 0;

	while (urxe_mr_next_bytes(mr, &i, &bytes))
		if (!uaccess_is_mapped((uintptr_t)bytes.addr, bytes.length))
			return false;
	return true;
}

static void write_mr(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	const struct mr *mr = (const struct mr *)object;
	struct mr_record r = {
		.object = object_record(save, object),
		.pd = mr->pd->object.handle,
		.key = urxe_mr_key(mr->mr),
		.start = mr->start,
		.length = mr->length,
		.whole = is_whole(mr->mr),
	};

	mr_fields(s, &r);
}

static void write_mw(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	const struct mw *mw = (const struct mw *)object;
	struct mw_record r = {
		.object = object_record(save, object),
		.pd = mw->pd->object.handle,
		.key = urxe_mw_key(mw->mw),
	};

	mw_fields(s, &r);
}

static void write_ah(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	const struct ah *ah = (const struct ah *)object;
	struct ah_record r = {
		.object = object_record(save, object),
		.pd = ah->pd->object.handle,
		.path = ah->path,
	};

	ah_fields(s, &r);
}

static void write_cq(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	const struct cq *cq = (const struct cq *)object;
	struct cq_record r = {
		.object = object_record(save, object),
		.channel = channel_index(save, cq->channel),
		.producer = cq->producer,
		.comp_events = cq->comp_events,
		.async_events = cq->async_events,
		.armed = cq->armed,
		.ex_known = cq->ex_known,
		.ring = ring_record(&cq->ring),
	};

	cq_fields(s, &r);
}

static void write_srq(const struct process_save *save, struct state_stream *s,
		      const struct object *object)
{
	const struct srq *srq = (const struct srq *)object;
	struct srq_record r = {
		.object = object_record(save, object),
		.pd = srq->pd->object.handle,
		.max_sge = srq->recv.max_sge,
		.async_events = srq->async_events,
		.queue = work_queue_record(&srq->recv.wq),
	};

	srq_fields(s, &r);
}

static void write_qp(const struct process_save *save, struct state_stream *s,
		     const struct object *object)
{
	const struct qp *qp = (const struct qp *)object;
	struct qp_record r = {
		.object = object_record(save, object),
		.qpn = qp->qpn,
		.pd = qp->pd->object.handle,
		.send_cq = qp->send_cq->object.handle,
		.recv_cq = qp->recv_cq->object.handle,
		.srq = qp->srq ? qp->srq->object.handle : 0,
		.async_events = qp->async_events,
		.qp_type = qp->limits.qp_type,
		.send_sge = qp->limits.max_sge,
		.inline_bytes = qp->limits.max_inline,
		.recv_sge = qp->recv.max_sge,
		.send = work_queue_record(&qp->sq),
		.receive = work_queue_record(&qp->recv.wq),
		.connected = qp->remote,
	};

	if (qp->remote) {
		memcpy(r.dgid, qp->remote->dgid, sizeof(r.dgid));
		r.remote_qpn = qp->remote->qpn;
	}
	qp_fields(s, &r);
}

/* The kinds of objects in the order of their records in the stream. */
static const struct {
	enum object_type type;
	enum checkpoint_record kind;
	void (*write)(const struct process_save *save, struct state_stream *s,
		      const struct object *object);
} kinds[] = {
	{OBJECT_PD, CHECKPOINT_PD, write_pd}, {OBJECT_MR, CHECKPOINT_MR, write_mr},
	{OBJECT_MW, CHECKPOINT_MW, write_mw}, {OBJECT_AH, CHECKPOINT_AH, write_ah},
	{OBJECT_CQ, CHECKPOINT_CQ, write_cq}, {OBJECT_SRQ, CHECKPOINT_SRQ, write_srq},
	{OBJECT_QP, CHECKPOINT_QP, write_qp},
};

static void write_objects(const struct process_save *save, struct state_stream *s)
{
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (uint32_t i = 0; i < save->n_files; i++) {
			struct object *object;
			uint32_t at = 0;

			while ((object = handle_next(&save->files[i]->handles, kinds[k].type,
						     &at))) {
				state_begin(s, kinds[k].kind);
				kinds[k].write(save, s, object);
				state_end(s);
			}
		}
}

/* --- Records of the process, its contexts and channels. */

static int descriptor_of(const struct uverbs_file *file)
{
	int fd = fd_next(0);

	while (fd >= 0 && fd_find(fd) != &file->fd)
		fd = fd_next(fd + 1);
	return fd;
}

static uint64_t memfd_size(const struct uverbs_file *file)
{
	struct stat st;

	return fstat(descriptor_of(file), &st) ? 0 : (uint64_t)st.st_size;
}

static void write_process(struct state_stream *s)
{
	struct process_record r = {
		.mtu = adapter.welcome.mtu,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.last_pd = adapter.last_pd,
		.n_blocks = adapter.leases.n,
		.link_mtu = adapter.welcome.port.link_mtu,
		.up = adapter.welcome.port.up,
	};

	memcpy(r.mac, adapter.welcome.mac, sizeof(r.mac));
	memcpy(r.gids, adapter.welcome.port.gids, sizeof(r.gids));
	for (uint32_t i = 0; i < adapter.leases.n; i++)
		r.blocks[i] = adapter.leases.blocks[i]->qpn_first;
	state_begin(s, CHECKPOINT_PROCESS);
	process_fields(s, &r);
	state_end(s);
}

static void write_channels(const struct process_save *save, struct state_stream *s)
{
	for (uint32_t i = 0; i < save->n_channels; i++) {
		struct channel_record r = {.event_size = save->channels[i]->event_size};

		state_begin(s, CHECKPOINT_CHANNEL);
		channel_fields(s, &r);
		state_end(s);
	}
}

static void write_contexts(const struct process_save *save, struct state_stream *s)
{
	for (uint32_t i = 0; i < save->n_files; i++) {
		const struct uverbs_file *file = save->files[i];
		struct context_record r = {
			.memfd_size = memfd_size(file),
			.ring_offset = ring_space_lowest(&file->queues),
			.mapped_offset = ring_space_lowest(&file->queues),
			.async_channel = channel_index(save, file->async),
			.poll_ends = (uint32_t)file->poll_ends,
			.hooks = {.poll_cq = (uintptr_t)file->poll_cq,
				  .post_recv = (uintptr_t)file->post_recv,
				  .post_srq_recv = (uintptr_t)file->post_srq_recv,
				  .start_poll = (uintptr_t)file->start_poll,
				  .next_poll = (uintptr_t)file->next_poll,
				  .end_poll = (uintptr_t)file->end_poll},
		};

		state_begin(s, CHECKPOINT_CONTEXT);
		context_fields(s, &r);
		state_end(s);
	}
}

static void write_engine(const struct process_save *save, struct state_stream *s)
{
	state_begin(s, CHECKPOINT_ENGINE);
	state_bytes(s, save->engine, save->engine_length);
	state_end(s);
}

/* --- Records of state that the program may change until its threads are stopped. */

static bool descriptor_record(const struct process_save *save, int fd, struct descriptor_record *r)
{
	const struct fd_object *object = fd_find(fd);
	int flags = fcntl(fd, F_GETFD), status = fcntl(fd, F_GETFL);

	*r = (struct descriptor_record){
		.number = (uint32_t)fd,
		.cloexec = flags & FD_CLOEXEC,
		.nonblock = status & O_NONBLOCK,
	};
	/* The program has closed the descriptor by a raw system call. */
	if (!object || flags < 0 || status < 0)
		return false;
	if (object->kind == FD_UVERBS) {
		r->kind = DESCRIPTOR_CONTEXT;
		r->index = context_index(save, (const struct uverbs_file *)object);
	} else if (object->kind == FD_CHANNEL) {
		r->kind = DESCRIPTOR_CHANNEL;
		r->index = channel_index(save, (const struct comp_channel *)object);
	} else {
		r->kind = DESCRIPTOR_RDMACM;
		r->index = frozen_index(save->rdmacm, (const struct rdmacm_file *)object);
	}
	return true;
}

static void write_descriptors(const struct process_save *save, struct state_stream *s)
{
	struct descriptor_record r;

	for (int fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1)) {
		if (!descriptor_record(save, fd, &r))
			continue;
		state_begin(s, CHECKPOINT_DESCRIPTOR);
		descriptor_fields(s, &r);
		state_end(s);
	}
}

static void write_mappings(const struct process_save *save, struct state_stream *s)
{
	for (uint32_t i = 0; i < save->n_files; i++) {
		int fd = descriptor_of(save->files[i]);

		if (fd < 0)
			state_fail(s, checkpoint_fail(-EBUSY, "the device is being closed"));
		else
			ring_mappings_write(s, i, fd, &save->files[i]->queues);
	}
}

static void count_event(void *n, const struct comp_channel_event *event)
{
	(void)event;
	++*(uint32_t *)n;
}

static void write_event(void *s, const struct comp_channel_event *event)
{
	struct event_record r = {event->element, event->type};

	unread_event_fields(s, &r);
}

static void write_events(const struct process_save *save, struct state_stream *s)
{
	for (uint32_t i = 0; i < save->n_channels; i++) {
		uint32_t n = 0, index = i;

		comp_channel_peek(save->channels[i], count_event, &n);
		if (!n)
			continue;
		state_begin(s, CHECKPOINT_EVENTS);
		state_u32s(s, &index, &n);
		comp_channel_peek(save->channels[i], write_event, s);
		state_end(s);
	}
}

static bool is_empty_page(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, RING_PAGE - 1);
}

static void write_pages(struct state_stream *s, const uint8_t *ring, uint64_t size)
{
	uint32_t n = 0;

	/* Without s->out, save_prepare() only measures the stream. Then all pages count, because
	 * until save_write() any page may be filled. */
	for (uint64_t at = 0; at < size; at += RING_PAGE)
		n += !s->out || !is_empty_page(ring + at);
	state_u32(s, &n);
	for (uint64_t at = 0; at < size; at += RING_PAGE) {
		uint32_t index = (uint32_t)(at / RING_PAGE);

		if (s->out && is_empty_page(ring + at))
			continue;
		state_u32(s, &index);
		state_bytes(s, (void *)(ring + at), RING_PAGE);
	}
}

static void write_ring(struct state_stream *s, uint32_t context, const struct queue *ring)
{
	struct ring_bytes_record r = {.context = context,
				      .offset = ring->offset,
				      .size = ring->buf ? queue_bytes(ring) : 0};

	if (!ring->buf)
		return;
	state_begin(s, CHECKPOINT_RING);
	ring_bytes_fields(s, &r);
	write_pages(s, (const uint8_t *)ring->buf, r.size);
	state_end(s);
}

static void write_rings(const struct process_save *save, struct state_stream *s)
{
	for (uint32_t i = 0; i < save->n_files; i++) {
		const struct handle_table *handles = &save->files[i]->handles;
		struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(handles, OBJECT_CQ, &at)))
			write_ring(s, i, &((struct cq *)object)->ring);
		at = 0;
		while ((object = handle_next(handles, OBJECT_SRQ, &at)))
			write_ring(s, i, &((struct srq *)object)->recv.wq.ring);
		at = 0;
		while ((object = handle_next(handles, OBJECT_QP, &at))) {
			write_ring(s, i, &((struct qp *)object)->sq.ring);
			write_ring(s, i, &((struct qp *)object)->recv.wq.ring);
		}
	}
}

/* --- rdma_cm. */

static void write_rdmacm_ids(struct state_stream *s, uint32_t device, struct rdmacm_file *file)
{
	for (uint32_t number = 0; rdmacm_ids_next(file, &number); number++) {
		const struct rdmacm_id *id = rdmacm_id_find(file, number);
		struct rdmacm_id_record r = {
			.device = device,
			.number = number,
			.uid = id->create.uid,
			.ps = id->create.ps,
			.qp_type = id->create.qp_type,
			.owner = id->owner == RDMACM_OWNER_DAEMON,
			.events = id->events,
		};

		state_begin(s, CHECKPOINT_RDMACM_ID);
		rdmacm_id_fields(s, &r);
		state_end(s);
	}
}

static void write_rdmacm_states(struct state_stream *s, uint32_t device,
				const struct frozen_device *d)
{
	for (uint32_t i = 0; i < d->n_states; i++) {
		state_begin(s, CHECKPOINT_RDMACM_STATE);
		state_u32(s, &device);
		state_bytes(s, d->states[i].bytes, d->states[i].length);
		state_end(s);
	}
}

static void write_rdmacm(const struct process_save *save, struct state_stream *s)
{
	const struct frozen_devices *all = save->rdmacm;

	for (uint32_t i = 0; i < all->n; i++) {
		struct rdmacm_record r = {.n_ids = all->devices[i].n_ids,
					  .n_states = all->devices[i].n_states};

		state_begin(s, CHECKPOINT_RDMACM);
		rdmacm_fields(s, &r);
		state_end(s);
	}
	for (uint32_t i = 0; i < all->n; i++)
		write_rdmacm_ids(s, i, all->devices[i].file);
	for (uint32_t i = 0; i < all->n; i++)
		write_rdmacm_states(s, i, &all->devices[i]);
}

/* --- The stream. */

static int write_stream(const struct process_save *save, uint8_t *out, size_t room, size_t *length)
{
	struct state_stream s;
	int rc;

	stream_begin_save_to(&s, &checkpoint_format, out, room);
	write_process(&s);
	write_channels(save, &s);
	write_contexts(save, &s);
	write_objects(save, &s);
	write_engine(save, &s);
	if (!frozen_devices_are_current(save->rdmacm))
		state_fail(&s, checkpoint_fail(-EBUSY, "a thread opens or closes rdma_cm"));
	write_descriptors(save, &s);
	write_mappings(save, &s);
	write_events(save, &s);
	write_rings(save, &s);
	write_rdmacm(save, &s);
	state_begin(&s, CHECKPOINT_END);
	state_end(&s);
	rc = stream_finish_save_to(&s);
	*length = s.at;
	return rc;
}

/* The tag of a CQ, SRQ or QP in the engine's stream: index of its context << 32 | its handle. */
static uint64_t engine_tag(void *arg, enum urxe_state_kind kind, void *ctx)
{
	const struct object *object = ctx;

	(void)kind;
	return (uint64_t)context_index(arg, object->file) << 32 | object->handle;
}

static int save_engine(struct process_save *save, uint64_t now)
{
	/* No callback for completions, because all are in the rings. */
	const struct urxe_state_save how = {.arg = save, .tag = engine_tag};
	int rc = urxe_state_save(adapter.dev, now, &how, &save->engine, &save->engine_length);

	if (rc == -EBUSY)
		checkpoint_fail(rc,
				"another process copies registered memory, or a thread unmaps it");
	return rc;
}

static const struct ah *find_ah_without_hop(const struct uverbs_file *file)
{
	const struct ah *ah;
	uint32_t at = 0;

	while ((ah = (const struct ah *)handle_next(&file->handles, OBJECT_AH, &at)))
		if (!urxe_path_has_next_hop(&ah->path))
			return ah;
	return NULL;
}

int save_check_addresses(void)
{
	const struct uverbs_file *file;

	LIST_FOREACH(file, &adapter.files, link)
	{
		const struct ah *ah = find_ah_without_hop(file);

		if (ah)
			return checkpoint_fail(
				-EOPNOTSUPP,
				"address handle %u: urxed knows no next hop to its address",
				ah->object.handle);
	}
	return 0;
}

int save_prepare(struct process_save *save, const struct frozen_devices *rdmacm, uint64_t now)
{
	size_t length;
	int rc;

	save->rdmacm = rdmacm;
	rc = find_objects(save);
	if (!rc)
		rc = save_engine(save, now);
	if (!rc)
		rc = write_stream(save, NULL, 0, &length);
	if (rc)
		return rc;
	save->room = length + SPARE_ROOM;
	save->buffer = malloc(save->room);
	return save->buffer ? 0 : -ENOMEM;
}

static int write_all(int fd, const uint8_t *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno != EINTR)
			return checkpoint_fail(-errno, "cannot write the stream");
		if (written < 0)
			continue;
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}

int save_write(const struct process_save *save, int fd)
{
	size_t length;
	int rc = write_stream(save, save->buffer, save->room, &length);

	return rc ? rc : write_all(fd, save->buffer, length);
}

void save_free(struct process_save *save)
{
	urxe_state_free(save->engine);
	free(save->files);
	free(save->channels);
	free(save->buffer);
	*save = (struct process_save){0};
}
