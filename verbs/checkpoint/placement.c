/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/rdmacm_restore.h"
#include "checkpoint/rebuild.h"
#include "checkpoint/ring_mapping.h"
#include "objects/uverbs_file.h"
#include "process/emulated_fd.h"
#include "rdmacm/rdmacm.h"

static void close_number(int fd)
{
	fd_remove(fd);
	close(fd);
}

static int reserve_number(struct placement *p, int any)
{
	const int number = (int)p->image->descriptors[p->n_reserved].number;
	int fd = fcntl(any, F_DUPFD_CLOEXEC, number);

	if (fd < 0)
		return checkpoint_fail(-errno, "descriptor %d: %s", number, strerror(errno));
	if (fd != number) {
		close(fd);
		return checkpoint_fail(-EEXIST, "descriptor %d is in use", number);
	}
	p->n_reserved++;
	return 0;
}

int placement_reserve(struct placement *p, const struct image *image)
{
	/* Duplicates of this descriptor occupy the saved numbers. Its own number must not be one of
	 * them. */
	int any = eventfd(0, EFD_CLOEXEC), moved, rc = 0;

	*p = (struct placement){.image = image};
	if (any < 0)
		return -errno;
	/* Moves the descriptor to a higher number while its own number is a saved one. */
	for (uint32_t i = 0; i < image->n[CHECKPOINT_DESCRIPTOR]; i++) {
		if (image->descriptors[i].number != (uint32_t)any)
			continue;
		moved = fcntl(any, F_DUPFD_CLOEXEC, any + 1);
		close(any);
		any = moved;
		i = UINT32_MAX; /* wraps to 0: compares with all saved numbers again */
		if (any < 0)
			return -EMFILE;
	}
	while (!rc && p->n_reserved < image->n[CHECKPOINT_DESCRIPTOR])
		rc = reserve_number(p, any);
	close(any);
	return rc;
}

int placement_map(struct placement *p, const struct rebuilt *r)
{
	int rc = 0;

	p->was_reserved =
		calloc((size_t)p->image->n[CHECKPOINT_MAPPING] + 1, sizeof(*p->was_reserved));
	if (!p->was_reserved)
		return -ENOMEM;
	while (!rc && p->n_mapped < p->image->n[CHECKPOINT_MAPPING]) {
		const struct mapping_record *m = &p->image->mappings[p->n_mapped];

		rc = ring_mapping_place(m, r->contexts[m->context].memfd,
					&p->was_reserved[p->n_mapped]);
		if (rc)
			return checkpoint_fail(
				rc, "rings at address %#llx: %s", (unsigned long long)m->start,
				rc == -EEXIST ? "the address is in use" : strerror(-rc));
		p->n_mapped++;
	}
	return 0;
}

/* --- Descriptors. */

/* Replaces the reserved descriptor by a duplicate of `fd` with the saved flags. `fd` is in the
 * table of process/emulated_fd.c. 0 or a negative errno value. */
static int place_duplicate(int fd, const struct descriptor_record *d)
{
	int number = (int)d->number, flags = fcntl(fd, F_GETFL);

	if (dup3(fd, number, d->cloexec ? O_CLOEXEC : 0) < 0)
		return -errno;
	fd_duplicated(fd, number);
	if (fcntl(number, F_SETFL, d->nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK))
		return -errno;
	return 0;
}

static int open_rdmacm(const struct descriptor_record *d)
{
	int fd = rdmacm_open_until(O_CLOEXEC, restore_deadline());

	if (fd == -ETIMEDOUT)
		return checkpoint_fail(fd, "descriptor %u: urxed does not answer", d->number);
	return fd < 0 ? checkpoint_fail(fd, "descriptor %u: cannot open rdma_cm: %s", d->number,
					strerror(-fd))
		      : fd;
}

/* For streams of version 1, which have no records of rdma_cm devices and IDs: each rdma_cm
 * descriptor gets a new device of its own, without IDs. */
static int place_new_rdmacm(const struct descriptor_record *d)
{
	int fd = open_rdmacm(d), rc;

	if (fd < 0)
		return fd;
	rc = place_duplicate(fd, d);
	close_number(fd);
	return rc;
}

static int place_rdmacm(struct rebuilt_device *device, const struct descriptor_record *d)
{
	if (device->fd < 0)
		device->fd = open_rdmacm(d);
	if (device->fd < 0)
		return device->fd;
	device->file = rdmacm_lookup(device->fd);
	return place_duplicate(device->fd, d);
}

static int place_descriptor(struct rebuilt *r, const struct descriptor_record *d)
{
	switch (d->kind) {
	case DESCRIPTOR_CONTEXT: return place_duplicate(r->contexts[d->index].memfd, d);
	case DESCRIPTOR_CHANNEL: return place_duplicate(r->channels[d->index].fd, d);
	default:
		return r->image->n[CHECKPOINT_RDMACM] ? place_rdmacm(&r->devices[d->index], d)
						      : place_new_rdmacm(d);
	}
}

static void close_temporary(int *fd)
{
	close_number(*fd);
	*fd = -1;
}

int placement_install(const struct placement *p, struct rebuilt *r)
{
	const uint32_t *n = p->image->n;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < n[CHECKPOINT_DESCRIPTOR]; i++)
		rc = place_descriptor(r, &p->image->descriptors[i]);
	if (rc)
		return rc;
	/* Refuses contexts and devices of which the program has no descriptor: this function would
	 * close their last descriptor, the temporary one. */
	for (uint32_t i = 0; i < n[CHECKPOINT_CONTEXT]; i++)
		if (atomic_load(&r->contexts[i].file->fd.fds) == 1)
			return checkpoint_fail(
				-EBADMSG, "the stream has an open device without a descriptor");
	for (uint32_t i = 0; i < n[CHECKPOINT_RDMACM]; i++)
		if (r->devices[i].fd < 0)
			return checkpoint_fail(-EBADMSG, "an rdma_cm device without a descriptor");
	for (uint32_t i = 0; i < n[CHECKPOINT_CONTEXT]; i++)
		close_temporary(&r->contexts[i].memfd);
	for (uint32_t i = 0; i < n[CHECKPOINT_CHANNEL]; i++)
		close_temporary(&r->channels[i].fd);
	for (uint32_t i = 0; i < n[CHECKPOINT_RDMACM]; i++)
		close_temporary(&r->devices[i].fd);
	return 0;
}

void placement_done(struct placement *p)
{
	free(p->was_reserved);
	*p = (struct placement){0};
}

void placement_undo(struct placement *p)
{
	for (; p->n_mapped; p->n_mapped--)
		ring_mapping_remove(&p->image->mappings[p->n_mapped - 1],
				    p->was_reserved[p->n_mapped - 1]);
	while (p->n_reserved)
		close_number((int)p->image->descriptors[--p->n_reserved].number);
	placement_done(p);
}
