/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a text of /proc or of the run directory line by line, without malloc: the caller may be in
 * a mapping call of the program's allocator, with the allocator's locks held. Between
 * text_lines_open and text_lines_close cancellation is disabled: the calls of libc that need the
 * text, such as shmdt(), are no cancellation points, and the descriptor must not stay open.
 */
#ifndef URXE_VERBS_PROCESS_TEXT_LINES_H
#define URXE_VERBS_PROCESS_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct text_lines {
	int fd;         /* -1: the file could not be opened; the text is empty */
	int cancel;     /* for cancellation_restore */
	size_t at, end; /* bytes[at] to bytes[end - 1] were read, and not returned yet */
	char bytes[1024];
};

/* Opens the file. False: it cannot be opened; then the text is empty, and text_lines_close has no
 * effect. */
bool text_lines_open(struct text_lines *lines, const char *path);
/* Copies the next line to `line`, without its newline, terminated by a NUL, and truncated to `size`
 * bytes with the NUL. False at the end. */
bool text_lines_next(struct text_lines *lines, char *line, size_t size);
void text_lines_close(struct text_lines *lines);

#endif
