/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A server as a stream and descriptors, with which the server of another process goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rxe/state_stream.h>

#include "function_state.h"
#include "vfio_server_private.h"

static const struct state_format format = {.name = "urxeserv", .version = 1};

/* --- The process that has the connection */

/* Whether the server is between two messages: all of the last one was handled and answered, and
 * nothing of the next one was read. */
static bool is_between_messages(const struct vnic_vfio_server *server)
{
	const struct connection *c = &server->connection;

	return !vnic_vfio_server_is_held(server) && !c->have && !c->n_fds &&
	       !connection_is_writing(c);
}

int vnic_vfio_server_stop(struct vnic_vfio_server *server)
{
	if (server->migration.state != MIGRATION_RUNNING || server->migration.logging)
		return -EBUSY;
	if (!is_between_messages(server))
		return -EAGAIN;
	server->handing_over = true;
	server->attr.migration->stop(server->attr.ctx);
	return 0;
}

void vnic_vfio_server_resume(struct vnic_vfio_server *server)
{
	server->handing_over = false;
	server->attr.migration->start(server->attr.ctx);
	irq_raise_pending(&server->irq);
}

/* --- The stream */

/* What the stream says about the descriptors, which come in this order: the connection, the
 * eventfds, the files. */
struct parts {
	bool connected;
	uint64_t eventfds; /* bit n: vector n has one */
	uint32_t n_regions;
};

static void vectors_record(struct state_stream *s, struct irq_vectors *irq, uint64_t *eventfds)
{
	const uint64_t impossible = irq->count == 64 ? 0 : ~UINT64_C(0) << irq->count;

	state_u64(s, &irq->masked);
	state_u64(s, eventfds);
	state_require(s, !((irq->masked | *eventfds) & impossible));
}

static void region_record(struct state_stream *s, struct vnic_guest_region *region,
			  uint64_t *offset)
{
	state_u64s(s, &region->addr, &region->size);
	state_u64(s, offset);
	state_bool(s, &region->writable);
}

#define REGION_BYTES 25u /* of a region_record */

static void save_vectors(struct state_stream *s, struct irq_vectors *irq,
			 struct vnic_vfio_handover *h)
{
	uint64_t eventfds = 0;

	for (uint32_t i = 0; i < irq->count; i++) {
		if (irq->fds[i] < 0)
			continue;
		eventfds |= UINT64_C(1) << i;
		h->fds[h->n_fds++] = irq->fds[i];
	}
	vectors_record(s, irq, &eventfds);
}

static void save_regions(struct state_stream *s, const struct vnic_guest_memory *memory,
			 struct vnic_vfio_handover *h)
{
	uint32_t count;
	const struct vnic_guest_region *regions = vnic_guest_memory_regions(memory, &count);

	state_count(s, count, REGION_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		struct vnic_guest_region region = regions[i];
		uint64_t offset;

		h->fds[h->n_fds++] = vnic_guest_memory_file(&region, &offset);
		region_record(s, &region, &offset);
	}
}

static int save(struct vnic_vfio_server *server, uint8_t *function, size_t length,
		struct vnic_vfio_handover *h)
{
	struct state_stream s;
	bool connected = server->connection.socket >= 0;

	stream_begin_save(&s, &format);
	state_bools(&s, &connected, &server->version_known);
	if (connected)
		h->fds[h->n_fds++] = server->connection.socket;
	save_vectors(&s, &server->irq, h);
	save_regions(&s, server->attr.memory, h);
	state_require(&s, length <= UINT32_MAX);
	state_bytes(&s, function, state_count(&s, (uint32_t)length, 1));
	return stream_finish_save(&s, &h->stream, &h->length);
}

int vnic_vfio_server_hand_over(struct vnic_vfio_server *server, struct vnic_vfio_handover *h)
{
	uint8_t *function;
	size_t length;
	int rc;

	*h = (struct vnic_vfio_handover){.stream = NULL};
	if (!server_settle(server))
		return -EAGAIN;
	rc = function_state_save(server, &function, &length);
	if (rc)
		return rc;
	rc = save(server, function, length, h);
	free(function);
	return rc;
}

/* --- The process that takes the connection over */

static int take_fd(struct vnic_vfio_handover *h, uint32_t *at)
{
	const int fd = h->fds[*at];

	h->fds[(*at)++] = -1;
	return fd;
}

static bool is_stream_socket(int fd)
{
	int domain, type;
	socklen_t size = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
}

/* Whether *h has the descriptors that the stream lists; checked before any of them is used. */
static bool fds_fit(const struct vnic_vfio_handover *h, const struct parts *p)
{
	return h->n_fds ==
		       p->connected + (uint32_t)__builtin_popcountll(p->eventfds) + p->n_regions &&
	       (!p->connected || is_stream_socket(h->fds[0]));
}

static int take_eventfds(struct irq_vectors *irq, uint64_t eventfds, struct vnic_vfio_handover *h,
			 uint32_t *at)
{
	int rc = 0;

	for (uint32_t i = 0; i < irq->count && !rc; i++)
		if (eventfds >> i & 1)
			rc = irq_set_eventfds(irq, i, &h->fds[(*at)++], 1);
	return rc;
}

static void restore_regions(struct state_stream *s, struct vnic_vfio_server *server,
			    const struct vnic_vfio_handover *h, uint32_t at, uint32_t n)
{
	const struct vnic_vfio_attr *attr = &server->attr;

	for (uint32_t i = 0; i < n && !s->error; i++) {
		struct vnic_guest_region r = {.addr = 0};
		uint64_t offset = 0;
		int rc;

		region_record(s, &r, &offset);
		if (s->error)
			return;
		rc = vnic_guest_memory_map(attr->memory, r.addr, r.size, h->fds[at + i], offset,
					   r.writable);
		if (rc)
			state_fail(s, rc);
		else
			attr->ops.memory_added(attr->ctx, r.addr, r.size);
	}
}

static void restore_function(struct state_stream *s, struct vnic_vfio_server *server)
{
	const uint32_t n = state_count(s, 0, 1);
	const uint8_t *function = state_take(s, n);

	if (!stream_finish_restore(s))
		s->error = function_state_restore(server, function, n);
}

int vnic_vfio_server_take_over(struct vnic_vfio_server *server, struct vnic_vfio_handover *h)
{
	struct irq_vectors *irq = &server->irq;
	struct parts p = {.connected = false};
	struct state_stream s;
	uint32_t at;

	server->handing_over = true;
	server->attr.migration->stop(server->attr.ctx);
	stream_begin_restore(&s, &format, h->stream, h->length);
	state_bools(&s, &p.connected, &server->version_known);
	vectors_record(&s, irq, &p.eventfds);
	p.n_regions = state_count(&s, 0, REGION_BYTES);
	state_require(&s, fds_fit(h, &p));
	if (s.error)
		return s.error;
	at = p.connected + (uint32_t)__builtin_popcountll(p.eventfds);
	restore_regions(&s, server, h, at, p.n_regions);
	restore_function(&s, server);
	if (s.error)
		return s.error;
	at = p.connected;
	s.error = take_eventfds(irq, p.eventfds, h, &at);
	if (p.connected) {
		at = 0;
		connection_open(&server->connection, take_fd(h, &at));
	}
	return s.error;
}
