/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/rdmacm_freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/image/checkpoint_error.h"
#include "engine/clock.h"
#include "rdmacm/daemon_socket.h"
#include "rdmacm/ids.h"
#include "rdmacm/rdmacm_file.h"

/* How long an attempt to stop the device waits for the lock of an rdma_cm device. */
#define LOCK_NS 1000000

uint32_t frozen_index(const struct frozen_devices *all, const struct rdmacm_file *file)
{
	uint32_t i = 0;

	while (i < all->n && all->devices[i].file != file)
		i++;
	return i;
}

/* Whether the descriptor is open: a raw system call may have closed one that the table has. */
static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool has_descriptor(const struct rdmacm_file *file)
{
	int fd = fd_next(0);

	while (fd >= 0 && (fd_find(fd) != &file->fd || !is_open(fd)))
		fd = fd_next(fd + 1);
	return fd >= 0;
}

/* Whether the device of a descriptor is in the list; true for descriptors of other kinds. */
static bool is_known(const struct frozen_devices *all, int fd)
{
	const struct fd_object *object = fd_find(fd);

	return !object || object->kind != FD_RDMACM || !is_open(fd) ||
	       frozen_index(all, (const struct rdmacm_file *)object) < all->n;
}

bool frozen_devices_are_current(const struct frozen_devices *all)
{
	for (int fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1))
		if (!is_known(all, fd))
			return false;
	for (uint32_t i = 0; i < all->n; i++)
		if (!has_descriptor(all->devices[i].file))
			return false;
	return true;
}

/* --- Commands. */

/* Sends the daemon a command for the device. Returns the status that the daemon answers, or an
 * error of rdmacm_daemon_try; *response has the daemon's record. */
static int ask(struct rdmacm_file *file, uint32_t command, uint64_t deadline,
	       struct rdmacm_response *response)
{
	const struct rdmacm_request request = {
		.command = {.command = command, .out = CM_ATTACH_BYTES},
		.opening = file->opening,
		.from = file};
	int rc = rdmacm_daemon_try(file, &request, response, deadline);

	return rc ? rc : response->reply.status;
}

static int explain_freeze_error(int rc)
{
	switch (rc) {
	case -EINVAL:
		return checkpoint_fail(-EOPNOTSUPP, "the urxed that runs is an earlier version, "
						    "which does not hand over rdma_cm IDs");
	case -EOVERFLOW:
		return checkpoint_fail(-EOPNOTSUPP, "urxed has an rdma_cm ID or event whose record "
						    "is too long");
	case -EAGAIN: return checkpoint_fail(-EBUSY, "no urxed runs");
	case -EALREADY:
		return checkpoint_fail(-EBUSY, "urxed has not ended an earlier stop of the "
					       "rdma_cm IDs");
	case -EBUSY: return checkpoint_fail(rc, "an rdma_cm ID was destroyed meanwhile");
	case -ETIMEDOUT: return checkpoint_fail(rc, "urxed does not answer");
	default: return checkpoint_explain(rc, "urxed does not hand over the rdma_cm IDs");
	}
}

static int add_state(struct frozen_device *d, const struct rdmacm_response *response)
{
	struct frozen_state *states;

	/* Doubles the room when the number of states is a power of two, at which it is full. */
	if (!(d->n_states & (d->n_states - 1))) {
		states = realloc(d->states, (d->n_states ? 2 * d->n_states : 1) * sizeof(*states));
		if (!states)
			return -ENOMEM;
		d->states = states;
	}
	d->states[d->n_states].length = response->reply.out;
	memcpy(d->states[d->n_states++].bytes, response->out, response->reply.out);
	return 0;
}

/*
 * Has urxed stop the device's IDs. 0 or a negative errno value. After -ETIMEDOUT and -EALREADY,
 * too, the device counts as frozen, so that thaw_device() sends a thaw: after a timeout urxed may
 * stop the IDs later, and -EALREADY means that an earlier stop has not ended.
 */
static int freeze_ids(struct frozen_device *d, uint64_t deadline)
{
	struct rdmacm_response response;
	int rc = ask(d->file, CM_ATTACH_FREEZE, deadline, &response);

	d->frozen = !rc || rc == -ETIMEDOUT || rc == -EALREADY;
	return rc ? explain_freeze_error(rc) : 0;
}

static int get_states(struct frozen_device *d, uint64_t deadline)
{
	struct rdmacm_response response;
	int rc;

	while (!(rc = ask(d->file, CM_ATTACH_SAVE, deadline, &response)) && response.reply.out) {
		rc = add_state(d, &response);
		if (rc)
			break;
	}
	return rc ? explain_freeze_error(rc) : 0;
}

/* --- Devices. */

/* Permits IDs of the daemon that also listen at the kernel: they are saved without the kernel's
 * listener. */
static int check_id(const struct rdmacm_id *id, uint32_t number)
{
	if (id->owner == RDMACM_OWNER_DAEMON || (id->owner == RDMACM_OWNER_OPEN && !id->in_kernel))
		return 0;
	return checkpoint_fail(-EOPNOTSUPP,
			       "rdma_cm ID %u: its port or connection belongs to the kernel's "
			       "rdma_cm",
			       number);
}

/* With the lock of the device: counts its IDs, and has urxed stop them. 0; -EOPNOTSUPP: an ID is
 * the kernel's, or the parent process opened the device; -EIO: no urxed knows the IDs; or an error
 * of freeze_ids(). */
static int freeze_device(struct frozen_device *d, uint64_t deadline)
{
	struct rdmacm_file *file = d->file;
	uint32_t number = 0;
	int rc = 0;

	for (; !rc && rdmacm_ids_next(file, &number); number++, d->n_ids++)
		rc = check_id(rdmacm_id_find(file, number), number);
	if (rc || !d->n_ids)
		return rc;
	if (file->pid != getpid())
		return checkpoint_fail(-EOPNOTSUPP,
				       "an rdma_cm device that the parent process had opened");
	if (file->daemon_gone)
		return checkpoint_fail(
			-EIO, "the rdma_cm IDs are lost: the urxed that knew them has ended");
	return freeze_ids(d, deadline);
}

/*
 * Waits at most LOCK_NS for the lock of the device. 0, or -EBUSY without the lock. The thread that
 * holds the lock may wait for a new daemon. The engine thread, which looks for that daemon, may
 * wait for adapter_open_lock. So the caller frees its locks before the next attempt.
 */
static int lock_device(struct rdmacm_file *file, uint64_t deadline)
{
	uint64_t end = clock_monotonic() + LOCK_NS;

	if (rdmacm_lock_until(file, end < deadline ? end : deadline))
		return 0;
	return checkpoint_fail(-EBUSY, "a thread waits for an answer to an rdma_cm command");
}

static int add_device(struct frozen_devices *all, struct rdmacm_file *file, uint64_t deadline)
{
	struct frozen_device *devices =
		realloc(all->devices, (all->n + 1) * sizeof(struct frozen_device));
	int rc;

	if (!devices)
		return -ENOMEM;
	all->devices = devices;
	rc = lock_device(file, deadline);
	if (rc)
		return rc;
	if (file->opening % 2)
		devices[all->n++] = (struct frozen_device){.file = file};
	else
		pthread_mutex_unlock(&file->lock);
	return 0;
}

int rdmacm_freeze(struct frozen_devices *all, uint64_t deadline)
{
	struct rdmacm_file *file;
	int rc = 0;

	*all = (struct frozen_devices){0};
	for (file = rdmacm_files_first(); !rc && file; file = file->next)
		rc = add_device(all, file, deadline);
	for (uint32_t i = 0; !rc && i < all->n; i++)
		rc = freeze_device(&all->devices[i], deadline);
	/* Freezes all devices before it saves one, because events of a device may name IDs of
	 * another one. */
	for (uint32_t i = 0; !rc && i < all->n; i++)
		if (all->devices[i].frozen)
			rc = get_states(&all->devices[i], deadline);
	return rc;
}

/*
 * Has urxed go on with the device's IDs, and releases the lock. Needs no answer: if the daemon has
 * ended, the next daemon thaws the device when this process claims it. If the daemon does not
 * answer in time, the thaw waits at the daemon as the last command of this device
 * (rdmacm_daemon_try).
 */
static void thaw_device(struct frozen_device *d, uint64_t deadline)
{
	struct rdmacm_response response;

	if (d->frozen)
		(void)ask(d->file, CM_ATTACH_THAW, deadline, &response);
	pthread_mutex_unlock(&d->file->lock);
	free(d->states);
}

void rdmacm_thaw(struct frozen_devices *all, uint64_t deadline)
{
	for (uint32_t i = 0; i < all->n; i++)
		thaw_device(&all->devices[i], deadline);
	free(all->devices);
	*all = (struct frozen_devices){0};
}
