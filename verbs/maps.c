/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "maps.h"

#include <inttypes.h>
#include <string.h>

/* Paths make lines longer than any buffer. */
static void skip_rest(FILE *maps, const char *line)
{
	int c;

	if (strchr(line, '\n'))
		return;
	do
		c = getc(maps);
	while (c != '\n' && c != EOF);
}

bool maps_next(FILE *maps, struct mapping *m)
{
	char line[256], r, w;

	if (!fgets(line, sizeof(line), maps))
		return false;
	skip_rest(maps, line);
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%*2c %" SCNx64 " %x:%x %" SCNu64, &m->start,
		   &m->end, &r, &w, &m->offset, &m->major, &m->minor, &m->inode) != 8)
		return false;
	m->readable = r == 'r';
	m->writable = w == 'w';
	return true;
}

static bool follows(const struct mapping *first, uint64_t end, const struct mapping *m)
{
	return m->start == end && m->offset == end - first->start && m->inode == first->inode &&
	       m->major == first->major && m->minor == first->minor;
}

uint64_t maps_of_file(uint64_t start)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m, first = {0};
	uint64_t end = start;

	while (maps && maps_next(maps, &m)) {
		if (m.start == start && m.inode && !m.offset)
			first = m;
		else if (end == start || !follows(&first, end, &m))
			continue;
		end = m.end;
	}
	if (maps)
		fclose(maps);
	return end - start;
}
