/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a text of /proc or sysfs line by line without malloc: the caller may be in a mapping call
 * of the program's allocator, with the allocator's locks held, or in a signal handler's stat().
 * Between proc_lines_open and proc_lines_close the thread has cancellation disabled: the calls that
 * need the text, as shmdt(), are no cancellation points, and the descriptor must not stay open.
 */
#ifndef URXE_VERBS_MEMORY_PROC_LINES_H
#define URXE_VERBS_MEMORY_PROC_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct proc_lines {
	int fd;         /* -1: the file could not be opened; the text is empty */
	int cancel;     /* for cancellation_restore */
	size_t at, end; /* bytes[at] to bytes[end - 1] are read from the file, but not used yet */
	char bytes[1024];
};

/* Opens the file. False: it cannot be opened; then the text is empty, and proc_lines_close has no
 * effect. */
bool proc_lines_open(struct proc_lines *lines, const char *path);
/* The next line, without its newline, truncated to `size`. False at the end. */
bool proc_lines_next(struct proc_lines *lines, char *line, size_t size);
void proc_lines_close(struct proc_lines *lines);

#endif
