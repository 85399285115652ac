/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/emulated_fd.h"
#include "process/cancellation.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK_BITS 10
#define CHUNK_SIZE (1u << CHUNK_BITS)
#define CHUNKS     4096u /* for 4 Mi descriptors; the default of Linux' fs.nr_open is 1 Mi */

typedef _Atomic(struct fd_object *) slot_t;

atomic_uint fd_emulated;
static _Atomic(slot_t *) chunks[CHUNKS];
static pid_t owner;

static slot_t *slot_of(int fd)
{
	slot_t *chunk;

	if (fd < 0 || (unsigned int)fd >= CHUNKS * CHUNK_SIZE)
		return NULL;
	chunk = atomic_load_explicit(&chunks[(unsigned int)fd >> CHUNK_BITS], memory_order_acquire);
	return chunk ? &chunk[(unsigned int)fd & (CHUNK_SIZE - 1)] : NULL;
}

struct fd_object *fd_find(int fd)
{
	slot_t *slot = slot_of(fd);

	return slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
}

int fd_next(int fd)
{
	while ((unsigned int)fd < CHUNKS * CHUNK_SIZE && !fd_find(fd)) {
		bool empty = !atomic_load(&chunks[(unsigned int)fd >> CHUNK_BITS]);

		fd = empty ? (fd | (int)(CHUNK_SIZE - 1)) + 1 : fd + 1;
	}
	return (unsigned int)fd < CHUNKS * CHUNK_SIZE ? fd : -1;
}

static slot_t *make_slot(int fd)
{
	slot_t *none = NULL;
	slot_t *chunk;

	if (slot_of(fd) || fd < 0 || (unsigned int)fd >= CHUNKS * CHUNK_SIZE)
		return slot_of(fd);
	chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
	if (!chunk)
		return NULL;
	if (!atomic_compare_exchange_strong(&chunks[(unsigned int)fd >> CHUNK_BITS], &none, chunk))
		free(chunk);
	return slot_of(fd);
}

static void drop_reference(struct fd_object *object)
{
	const int cancel = cancellation_disable();

	atomic_fetch_sub(&fd_emulated, 1);
	if (atomic_fetch_sub(&object->fds, 1) == 1)
		object->release(object);
	cancellation_restore(cancel);
}

/* Puts the object into the slot, which takes over the caller's reference. Drops the reference of an
 * old entry, whose descriptor the program has closed by a raw system call. */
static void set_slot(slot_t *slot, struct fd_object *object)
{
	struct fd_object *old;

	atomic_fetch_add(&fd_emulated, 1);
	old = atomic_exchange(slot, object);
	if (old)
		drop_reference(old);
}

int fd_install(int fd, struct fd_object *object)
{
	slot_t *slot = make_slot(fd);

	if (!slot)
		return (unsigned int)fd >= CHUNKS * CHUNK_SIZE ? -EMFILE : -ENOMEM;
	if (!atomic_fetch_add(&object->fds, 1))
		atomic_fetch_add(&object->generation, 1);
	set_slot(slot, object);
	return 0;
}

void fd_set_owner(void)
{
	owner = getpid();
}

bool fd_is_owner(void)
{
	return getpid() == owner;
}

void fd_remove(int fd)
{
	slot_t *slot;
	struct fd_object *old;

	if (!fd_lookup(fd) || !fd_is_owner())
		return;
	slot = slot_of(fd);
	old = atomic_exchange(slot, NULL);
	if (old)
		drop_reference(old);
}

void fd_remove_range(unsigned int first, unsigned int last)
{
	if (last >= CHUNKS * CHUNK_SIZE)
		last = CHUNKS * CHUNK_SIZE - 1;
	while (first <= last && atomic_load(&fd_emulated)) {
		if (!atomic_load(&chunks[first >> CHUNK_BITS])) {
			first = (first | (CHUNK_SIZE - 1)) + 1;
			continue;
		}
		fd_remove((int)first++);
	}
}

/* Counts one descriptor more. False: another thread has closed the last descriptor meanwhile. */
static bool add_reference(struct fd_object *object)
{
	unsigned int n = atomic_load(&object->fds);

	while (n && !atomic_compare_exchange_weak(&object->fds, &n, n + 1))
		;
	return n;
}

void fd_duplicated(int old_fd, int new_fd)
{
	struct fd_object *object = fd_lookup(old_fd);
	unsigned int generation;
	slot_t *slot;

	if (new_fd < 0 || new_fd == old_fd)
		return;
	fd_remove(new_fd);
	if (!object || !fd_is_owner())
		return;
	/* If the table has no slot, the duplicate is an ordinary descriptor: commands by it fail.
	 */
	slot = make_slot(new_fd);
	generation = atomic_load(&object->generation);
	if (!slot || fd_find(old_fd) != object || !add_reference(object))
		return;
	set_slot(slot, object);
	/* If another thread closed old_fd before add_reference(), the object may belong to another
	 * device now. */
	if (atomic_load(&object->generation) != generation)
		fd_remove(new_fd);
}
