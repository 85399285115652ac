/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that map and unmap memory: registered memory (objects/mmu_notifier.h)
 * and rings (memory/ring_slab.h).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "adapter/adapter.h"
#include "interpose/interpose.h"
#include "memory/mr_index.h"
#include "memory/proc_maps.h"
#include "memory/ring_slab.h"
#include "objects/mmu_notifier.h"
#include "objects/uverbs_file.h"
#include "process/emulated_fd.h"
#include "process/text_lines.h"

/* True: this munmap() is librxe's, of the ring of a queue that the thread has just destroyed. The
 * ring's slab (memory/ring_slab.h) keeps the mapping and unmaps it later, so munmap() does nothing.
 * Always false for calls of this library itself, whose thread holds adapter.lock. */
static bool keep_ring(const void *start, size_t length)
{
	struct destroyed_ring ring;
	bool kept;

	if (adapter_inside || !ring_take_destroyed(start, length, &ring))
		return false;
	adapter_lock();
	kept = ring_space_keep(&ring);
	adapter_unlock();
	return kept;
}

static void note_ring(int fd, off_t offset, const void *start, size_t length)
{
	struct uverbs_file *file = adapter_inside ? NULL : uverbs_file_lookup(fd);

	if (!file)
		return;
	adapter_lock();
	if (file->live)
		ring_space_mapped(&file->queues, (uint64_t)offset, start, length);
	adapter_unlock();
}

HOOKED(int, munmap)(void *start, size_t length)
{
	struct unmapping u;
	int rc;

	if (keep_ring(start, length))
		return 0;
	unmap_begin(&u, start, length);
	rc = REAL(munmap)(start, length);
	unmap_end(&u, rc == 0);
	return rc;
}
HOOK(int, munmap, (void *start, size_t length), mr_index_any() || fd_any(), (start, length))

static bool replaces(int flags)
{
	return flags & MAP_FIXED && !(flags & MAP_FIXED_NOREPLACE);
}

/* The default size of huge pages in bytes, from /proc/meminfo; 2 MiB if that cannot be read. */
static size_t default_huge_page(void)
{
	struct text_lines info;
	char line[64];
	size_t kib = 2048;

	text_lines_open(&info, "/proc/meminfo");
	while (text_lines_next(&info, line, sizeof(line)))
		if (sscanf(line, "Hugepagesize: %zu", &kib) == 1)
			break;
	text_lines_close(&info);
	return kib * 1024;
}

/* Size in bytes of the huge pages that a call of mmap maps; 1: it maps none. */
static size_t huge_page(int flags, int fd)
{
	const unsigned int log = (unsigned int)flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
	struct statfs fs;

	if (!(flags & MAP_ANONYMOUS))
		return !fstatfs(fd, &fs) && fs.f_type == HUGETLBFS_MAGIC ? (size_t)fs.f_bsize : 1;
	if (!(flags & MAP_HUGETLB))
		return 1;
	return log ? (size_t)1 << log : default_huge_page();
}

/* Number of bytes in which a call of mmap replaces old mappings; if it maps huge pages, the kernel
 * rounds up to whole ones. 0: it replaces none, or the process has no registered memory. */
static size_t replaced_length(size_t length, int flags, int fd)
{
	size_t huge;

	if (!replaces(flags) || !mr_index_any())
		return 0;
	huge = huge_page(flags, fd);
	return (length + huge - 1) & ~(huge - 1);
}

#define MMAP(name)                                                                    \
	HOOKED(void *, name)                                                          \
	(void *start, size_t length, int prot, int flags, int fd, off_t offset)       \
	{                                                                             \
		struct unmapping u;                                                   \
		void *mapped;                                                         \
                                                                                      \
		unmap_begin(&u, start, replaced_length(length, flags, fd));           \
		mapped = REAL(name)(start, length, prot, flags, fd, offset);          \
		unmap_end(&u, mapped != MAP_FAILED);                                  \
		if (mapped != MAP_FAILED)                                             \
			note_ring(fd, offset, mapped, length);                        \
		return mapped;                                                        \
	}                                                                             \
	HOOK(void *, name,                                                            \
	     (void *start, size_t length, int prot, int flags, int fd, off_t offset), \
	     (flags & MAP_FIXED && mr_index_any()) || (fd >= 0 && fd_any()),          \
	     (start, length, prot, flags, fd, offset))

MMAP(mmap)
MMAP(mmap64)

/* Tries to let a mapping with registered memory grow in place, before it may move: in place no
 * memory is unmapped, so the registration can stay. True: the mapping has grown. */
static bool grows_in_place(void *old, size_t old_length, size_t length, int flags)
{
	return flags == MREMAP_MAYMOVE && length > old_length &&
	       mr_index_overlaps((uintptr_t)old, old_length) &&
	       REAL(mremap)(old, old_length, length, 0) != MAP_FAILED;
}

/* unmap_begin() for an mremap that shrinks a mapping in place: the kernel unmaps whole pages. */
static void begin_shrinking(struct unmapping *u, char *old, size_t old_length, size_t length)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = (length + page - 1) & ~(page - 1);

	unmap_begin(u, old + kept, length && kept < old_length ? old_length - kept : 0);
}

HOOKED(void *, mremap)(void *old, size_t old_length, size_t length, int flags, void *to)
{
	bool stays = !(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && length <= old_length;
	struct unmapping from, over;
	void *mapped;

	if (grows_in_place(old, old_length, length, flags))
		return old;
	if (stays)
		begin_shrinking(&from, old, old_length, length);
	else
		unmap_begin(&from, old, flags & MREMAP_MAYMOVE ? old_length : 0);
	unmap_begin(&over, to, flags & MREMAP_FIXED ? length : 0);
	mapped = REAL(mremap)(old, old_length, length, flags, to);
	unmap_end(&over, mapped != MAP_FAILED);
	unmap_end(&from, mapped != MAP_FAILED && (stays || mapped != old));
	return mapped;
}
HOOK_VARIABLE(void *, mremap, (void *old, size_t old_length, size_t length, int flags, void *to),
	      mr_index_any(), (old, old_length, length, flags, to))

/* Withdraws from their regions all mappings that shmdt(start) unmaps: those of the System V segment
 * attached at `start`, without the segment's other attachments. For them shmdt() cannot fail. */
static void withdraw_segment(const void *start)
{
	struct text_lines maps;
	struct mapping m = {0};
	struct unmapping u;

	proc_maps_open(&maps);
	while (proc_maps_next_attached(&maps, (uintptr_t)start, &m)) {
		unmap_begin(&u, (void *)m.start, m.end - m.start);
		unmap_end(&u, true);
	}
	text_lines_close(&maps);
}

HOOKED(int, shmdt)(const void *start)
{
	if (mr_index_any())
		withdraw_segment(start);
	return REAL(shmdt)(start);
}
HOOK(int, shmdt, (const void *start), mr_index_any(), (start))
