/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "unmap.h"

#include <errno.h>
#include <unistd.h>

#include <rxe/rxe.h>

#include "fault.h"
#include "fd.h"
#include "mr.h"
#include "port.h"
#include "registered.h"

/* What a mapping call makes of a length; 0 where it will refuse the call. */
static uint64_t whole_pages(uint64_t start, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;

	if (start % page || __builtin_add_overflow(start, length, &end) || end > UINT64_MAX - page)
		return 0;
	return (length + page - 1) & ~(page - 1);
}

/* What a child of vfork unmaps is another's, who has no more than it had. */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length)
{
	*u = (struct unmapping){.start = (uintptr_t)start};
	length = whole_pages(u->start, length);
	if (!registered_within(u->start, length) || !fd_owned())
		return;
	u->length = length;
	port_lock();
	LIST_INSERT_HEAD(&port.unmappings, u, link);
	port_unlock();
}

static void unmap_regions(const struct urxe_extent *bytes)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &port.files, link)
	{
		struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(&file->handles, OBJECT_MR, &at)))
			mr_unmap((struct mr *)object, bytes);
	}
}

void unmap_end(struct unmapping *u, bool done)
{
	int saved = errno;

	if (!u->length)
		return;
	port_lock();
	LIST_REMOVE(u, link);
	if (done)
		unmap_regions(&(struct urxe_extent){(void *)(uintptr_t)u->start, u->length});
	port_unlock();
	errno = saved;
}

/* A call that fails unmaps nothing, though what was asked for meanwhile was refused. */
static bool is_being_unmapped(const struct urxe_extent *bytes)
{
	uint64_t start = (uintptr_t)bytes->addr;
	const struct unmapping *u;

	LIST_FOREACH(u, &port.unmappings, link)
	if (start < u->start + u->length && u->start < start + bytes->length)
		return true;
	return false;
}

bool unmap_guard(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		 void *arg)
{
	if (__builtin_expect(!LIST_EMPTY(&port.unmappings), 0) && is_being_unmapped(bytes))
		return false;
	return fault_guard(dev_ctx, bytes, touch, arg);
}
