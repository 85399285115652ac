/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A text of /proc, line by line, without memory being asked for: whoever wants to know may be in a
 * mapping call of the program's allocator, which holds its own locks.
 */
#ifndef URXE_VERBS_MEMORY_PROC_LINES_H
#define URXE_VERBS_MEMORY_PROC_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines {
	int fd; /* -1: it could not be opened, and has no line */
	size_t at, end;
	char bytes[1024];
};

/* False: there is no such file, and so no line; lines_close does no harm. */
bool lines_open(struct lines *lines, const char *path);
/* The next line, without its end, and cut where it is longer. False: there is none. */
bool lines_next(struct lines *lines, char *line, size_t size);
void lines_close(struct lines *lines);

#endif
