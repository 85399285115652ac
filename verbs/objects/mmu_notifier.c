/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/mmu_notifier.h"

#include <errno.h>
#include <unistd.h>

#include <rxe/rxe.h>

#include "adapter/adapter.h"
#include "memory/mr_index.h"
#include "memory/proc_maps.h"
#include "memory/uaccess.h"
#include "objects/settle.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_mr.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"

/* The length in whole pages, as the kernel rounds it in mmap() and munmap(); 0 if the call will
 * fail. */
static uint64_t whole_pages(uint64_t start, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;

	if (start % page || __builtin_add_overflow(start, length, &end) || end > UINT64_MAX - page)
		return 0;
	return (length + page - 1) & ~(page - 1);
}

static void for_each_mr(void (*fn)(struct mr *mr, const struct unmapping *u),
			const struct unmapping *u)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &adapter.files, link)
	{
		struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(&file->handles, OBJECT_MR, &at)))
			if (!((struct mr *)object)->on_demand)
				fn((struct mr *)object, u);
	}
}

static void begin_unmapping(struct mr *mr, const struct unmapping *u)
{
	mr_unmap(mr, &u->bytes);
}

/*
 * No effect in a child of vfork, which unmaps its own mappings: the parent's regions stay. No
 * effect with adapter.lock: then this library unmaps memory of its own. That may lie within a
 * region whose memory the program has unmapped by a raw system call.
 */
void unmap_begin(struct unmapping *u, const void *start, uint64_t length)
{
	int cancel;

	*u = (struct unmapping){.bytes.addr = (void *)start};
	length = whole_pages((uintptr_t)start, length);
	if (adapter_inside || !mr_index_overlaps((uintptr_t)start, length) || !fd_is_owner())
		return;
	u->bytes.length = length;
	cancel = cancellation_disable();
	adapter_lock();
	u->registrations = adapter.registrations;
	for_each_mr(begin_unmapping, u);
	adapter_unlock_settled();
	cancellation_restore(cancel);
}

/* Makes the withdrawal from the region final if the call has unmapped the bytes, or undoes it
 * (urxe_mr_unmapped). Skips regions that were registered during the call: they belong to a new
 * mapping, perhaps of another thread. */
static void end_unmapping(struct mr *mr, const struct unmapping *u)
{
	if (mr->registration <= u->registrations)
		urxe_mr_unmapped(mr->mr, &u->bytes, u->done);
}

static void remove_bytes(struct mr *mr, const struct unmapping *u)
{
	if (mr->registration > u->registrations)
		return;
	mr_unmap(mr, &u->bytes);
	urxe_mr_unmapped(mr->mr, &u->bytes, true);
}

/* Withdraws the addresses for good from the regions that existed before the call. unmap_begin has
 * already ended all accesses to the range. */
static void remove_range(const struct unmapping *u, uint64_t start, uint64_t end)
{
	const struct unmapping gone = {.bytes = {(void *)start, end - start},
				       .registrations = u->registrations};

	if (start < end)
		for_each_mr(remove_bytes, &gone);
}

/*
 * A call that fails may have unmapped bytes before: mmap with MAP_FIXED, if the file refuses the
 * new mapping, and before Linux 6.17 mremap. These bytes leave their regions, unless another thread
 * has mapped new memory there meanwhile.
 */
static void remove_unmapped(const struct unmapping *u)
{
	const uint64_t start = (uintptr_t)u->bytes.addr, end = start + u->bytes.length;
	uint64_t at = start;
	struct text_lines maps;
	struct mapping m;

	if (uaccess_is_mapped(start, u->bytes.length))
		return;
	proc_maps_open(&maps);
	while (at < end && proc_maps_next(&maps, &m)) {
		if (m.end <= at)
			continue;
		remove_range(u, at, m.start < end ? m.start : end);
		at = m.end;
	}
	text_lines_close(&maps);
	remove_range(u, at, end);
}

void unmap_end(struct unmapping *u, bool done)
{
	int saved = errno, cancel;

	if (!u->bytes.length)
		return;
	cancel = cancellation_disable();
	adapter_lock();
	u->done = done;
	if (!done)
		remove_unmapped(u);
	for_each_mr(end_unmapping, u);
	adapter_unlock();
	cancellation_restore(cancel);
	errno = saved;
}
