/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/proc_maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool proc_maps_open(struct text_lines *maps)
{
	return text_lines_open(maps, "/proc/self/maps");
}

bool proc_maps_next(struct text_lines *maps, struct mapping *m)
{
	char line[256], r, w, x, s;
	int name = 0;

	if (!text_lines_next(maps, line, sizeof(line)))
		return false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &m->start, &m->end, &r, &w, &x, &s, &m->offset, &m->major, &m->minor, &m->inode,
		   &name) < 10)
		return false;
	m->readable = r == 'r';
	m->writable = w == 'w';
	m->shared = s == 's';
	m->segment = !m->major && !strncmp(line + name, "/SYSV", 5);
	return true;
}

/* Whether the mapping belongs to the attachment of the segment at `start`: then the mapping's
 * address minus its offset in the segment is `start`. */
static bool is_attached_at(const struct mapping *m, uint64_t start)
{
	return m->segment && m->start - start == m->offset;
}

static bool is_of_file(const struct mapping *m, const struct mapping *of)
{
	return m->inode == of->inode && m->major == of->major && m->minor == of->minor;
}

bool proc_maps_next_attached(struct text_lines *maps, uint64_t start, struct mapping *m)
{
	const struct mapping before = *m;

	while (proc_maps_next(maps, m))
		if (is_attached_at(m, start) && (!before.segment || is_of_file(m, &before)))
			return true;
	return false;
}
