/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/replace/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxe/state_stream.h>

static const struct state_format format = {.name = "urxevmre", .version = 1};

/* The descriptors of a bundle: pass_fd() appends one to the list, or, if `taking`, takes the next
 * one out of it. */
struct fd_list {
	bool taking;
	int *fds;
	uint32_t at, n;
};

static void pass_fd(struct state_stream *s, struct fd_list *list, int *fd)
{
	if (!list->taking) {
		list->fds[list->n++] = *fd;
		return;
	}
	*fd = -1;
	state_require(s, list->at < list->n);
	if (s->error)
		return;
	*fd = list->fds[list->at];
	list->fds[list->at++] = -1;
}

static void options_record(struct state_stream *s, struct bundle_options *o)
{
	state_bytes(s, o->mac, sizeof(o->mac));
	state_u16(s, &o->mtu);
	state_bools(s, &o->roce_v1, &o->map_doorbells);
}

static void switch_link_record(struct state_stream *s, struct fd_list *list,
			       struct switch_link_handover *link)
{
	state_bool(s, &link->joined);
	state_u32s(s, &link->mtu, &link->sent);
	if (!link->joined)
		return;
	pass_fd(s, list, &link->socket);
	pass_fd(s, list, &link->fds.memory);
	pass_fd(s, list, &link->fds.wake);
	pass_fd(s, list, &link->fds.kick);
}

/* Writes or reads a function's stream. When reading, h->stream is a copy that bundle_close frees.
 */
static void stream_record(struct state_stream *s, struct vnic_vfio_handover *h)
{
	const uint32_t n = state_count(s, (uint32_t)h->length, 1);
	const uint8_t *bytes;

	if (!s->restoring) {
		state_bytes(s, h->stream, n);
		return;
	}
	bytes = state_take(s, n);
	h->stream = s->error ? NULL : malloc(n + 1);
	if (!h->stream) {
		state_fail(s, -ENOMEM);
		return;
	}
	memcpy(h->stream, bytes, n);
	h->length = n;
}

static void function_record(struct state_stream *s, struct fd_list *list,
			    struct vnic_vfio_handover *h)
{
	uint32_t n = h->n_fds;

	state_u32_max(s, &n, VNIC_VFIO_FDS);
	for (uint32_t i = 0; i < n && !s->error; i++) {
		pass_fd(s, list, &h->fds[i]);
		h->n_fds = i + 1;
	}
	stream_record(s, h);
}

static void bundle_record(struct state_stream *s, struct fd_list *list, struct bundle *b)
{
	options_record(s, &b->options);
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		pass_fd(s, list, &b->listeners[i]);
	pass_fd(s, list, &b->replace_listener);
	if (b->options.map_doorbells)
		pass_fd(s, list, &b->doorbells);
	switch_link_record(s, list, &b->link);
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		function_record(s, list, &b->functions[i]);
}

int bundle_encode(const struct bundle *b, uint8_t **stream, size_t *length, int fds[BUNDLE_FDS],
		  uint32_t *n_fds)
{
	struct fd_list list = {.fds = fds};
	struct bundle copy = *b;
	struct state_stream s;

	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		if (b->functions[i].length > UINT32_MAX)
			return -EFBIG;
	stream_begin_save(&s, &format);
	bundle_record(&s, &list, &copy);
	*n_fds = list.n;
	return stream_finish_save(&s, stream, length);
}

static void init_bundle(struct bundle *b)
{
	*b = (struct bundle){.replace_listener = -1, .doorbells = -1};
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++)
		b->listeners[i] = -1;
	b->link.socket = -1;
	b->link.fds = (struct netdev_shm_fds){-1, -1, -1};
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int bundle_decode(struct bundle *b, const uint8_t *stream, size_t length, const int fds[BUNDLE_FDS],
		  uint32_t n_fds)
{
	int left[BUNDLE_FDS];
	struct fd_list list = {.taking = true, .fds = left, .n = n_fds};
	struct state_stream s;

	init_bundle(b);
	memcpy(left, fds, n_fds * sizeof(*fds));
	if (!stream_begin_restore(&s, &format, stream, length))
		bundle_record(&s, &list, b);
	state_require(&s, list.at == n_fds);
	stream_finish_restore(&s);
	for (uint32_t i = 0; i < n_fds; i++)
		close_fd(left[i]);
	return s.error;
}

void bundle_close(struct bundle *b)
{
	const struct switch_link_handover *st = &b->link;
	const int single[] = {b->replace_listener, b->doorbells, st->socket,
			      st->fds.memory,      st->fds.wake, st->fds.kick};

	for (unsigned i = 0; i < sizeof(single) / sizeof(*single); i++)
		close_fd(single[i]);
	for (uint32_t i = 0; i < BUNDLE_FUNCTIONS; i++) {
		close_fd(b->listeners[i]);
		for (uint32_t j = 0; j < b->functions[i].n_fds; j++)
			close_fd(b->functions[i].fds[j]);
		free(b->functions[i].stream);
	}
	init_bundle(b);
}
