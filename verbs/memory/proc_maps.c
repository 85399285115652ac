/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/proc_maps.h"

#include <inttypes.h>
#include <stdio.h>

bool proc_maps_open(struct text_lines *maps)
{
	return text_lines_open(maps, "/proc/self/maps");
}

bool proc_maps_next(struct text_lines *maps, struct mapping *m)
{
	char line[256], r, w, x, s;

	if (!text_lines_next(maps, line, sizeof(line)))
		return false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %x:%x %" SCNu64, &m->start,
		   &m->end, &r, &w, &x, &s, &m->offset, &m->major, &m->minor, &m->inode) < 10)
		return false;
	m->readable = r == 'r';
	m->writable = w == 'w';
	m->shared = s == 's';
	return true;
}

/*
 * Anonymous memory has no device. A System V segment has device 00:01 or the like, and as inode its
 * ID, which is 0 for the first segment of each IPC namespace.
 */
static bool is_of_file(const struct mapping *m)
{
	return m->inode || m->major || m->minor;
}

static bool follows(const struct mapping *first, uint64_t end, const struct mapping *m)
{
	return m->start == end && m->offset == end - first->start && m->inode == first->inode &&
	       m->major == first->major && m->minor == first->minor;
}

uint64_t proc_maps_file_length(uint64_t start)
{
	struct mapping m, first = {0};
	uint64_t end = start;
	struct text_lines maps;

	proc_maps_open(&maps);
	while (proc_maps_next(&maps, &m)) {
		if (m.start == start && is_of_file(&m) && !m.offset)
			first = m;
		else if (end == start || !follows(&first, end, &m))
			continue;
		end = m.end;
	}
	text_lines_close(&maps);
	return end - start;
}
