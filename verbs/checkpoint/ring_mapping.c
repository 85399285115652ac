/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/ring_mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "memory/proc_maps.h"
#include "memory/ring_slab.h"

/* The most parts of mappings that the stream leaves out: each is a hole, which makes one more
 * mapping of the restored process. A process may have 65,530 (vm.max_map_count). */
#define HOLES_MAX 1024

static void write_part(struct state_stream *s, uint32_t context, const struct mapping *m,
		       uint64_t start, uint64_t end)
{
	struct mapping_record r = {
		.context = context,
		.start = start,
		.length = end - start,
		.offset = m->offset + (start - m->start),
		.writable = m->writable,
	};

	if (start == end)
		return;
	state_begin(s, CHECKPOINT_MAPPING);
	mapping_fields(s, &r);
	state_end(s);
}

/* Writes a mapping to the stream, without the parts that only a slab (memory/ring_slab.h) keeps
 * mapped: the restored process has no slabs, so nothing would unmap those parts. */
static void write_mapping(struct state_stream *s, uint32_t context, const struct mapping *m,
			  const struct ring_space *space, uint32_t *holes)
{
	uint64_t start = m->start, length;

	for (uint64_t at = m->start; at < m->end; at += length) {
		bool left = ring_space_is_left(space, m->offset + (at - m->start), at, &length);

		if (length > m->end - at)
			length = m->end - at;
		if (!left || (at != start && ++*holes > HOLES_MAX))
			continue;
		write_part(s, context, m, start, at);
		start = at + length;
	}
	write_part(s, context, m, start, m->end);
}

void ring_mappings_write(struct state_stream *s, uint32_t context, int memfd,
			 const struct ring_space *space)
{
	struct text_lines maps;
	uint32_t holes = 0;
	struct mapping m;
	struct stat st;

	if (fstat(memfd, &st) || !proc_maps_open(&maps)) {
		state_fail(s, -errno);
		return;
	}
	while (proc_maps_next(&maps, &m))
		if (m.inode == st.st_ino && m.major == major(st.st_dev) &&
		    m.minor == minor(st.st_dev))
			write_mapping(s, context, &m, space, &holes);
	text_lines_close(&maps);
}

/* Whether the checkpointer has reserved the range: all of it is mapped, shared and without
 * permissions. Private mappings without permissions are guard pages, or malloc's. */
static bool is_reserved(uint64_t start, uint64_t end)
{
	struct text_lines maps;
	struct mapping m;
	uint64_t at = start;

	if (!proc_maps_open(&maps))
		return false;
	while (at < end && proc_maps_next(&maps, &m)) {
		if (m.end <= at)
			continue;
		if (m.start > at || m.readable || m.writable || !m.shared)
			break;
		at = m.end;
	}
	text_lines_close(&maps);
	return at >= end;
}

int ring_mapping_place(const struct mapping_record *r, int memfd, bool *reserved)
{
	void *wanted = (void *)(uintptr_t)r->start;
	int protection = r->writable ? PROT_READ | PROT_WRITE : PROT_READ, fixed;
	void *mapped;

	*reserved = is_reserved(r->start, r->start + r->length);
	fixed = *reserved ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	mapped = mmap(wanted, r->length, protection, MAP_SHARED | fixed, memfd, (off_t)r->offset);
	if (mapped == MAP_FAILED)
		return -errno;
	if (mapped == wanted)
		return 0;
	/* Linux before 4.17 ignores MAP_FIXED_NOREPLACE and takes the address as a hint. */
	munmap(mapped, r->length);
	return -EEXIST;
}

void ring_mapping_remove(const struct mapping_record *r, bool reserved)
{
	void *start = (void *)(uintptr_t)r->start;

	if (reserved)
		(void)mmap(start, r->length, PROT_NONE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(start, r->length);
}
