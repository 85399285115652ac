/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/text_lines.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "process/cancellation.h"

bool text_lines_open(struct text_lines *lines, const char *path)
{
	const int cancel = cancellation_disable();

	lines->cancel = cancel;
	lines->at = lines->end = 0;
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (lines->fd < 0)
		cancellation_restore(cancel);
	return lines->fd >= 0;
}

/* The next byte of the text; -1: its end, or a read error. */
static int next_byte(struct text_lines *lines)
{
	ssize_t n;

	if (lines->at == lines->end) {
		n = lines->fd < 0 ? 0 : read(lines->fd, lines->bytes, sizeof(lines->bytes));
		if (n <= 0)
			return -1;
		lines->at = 0;
		lines->end = (size_t)n;
	}
	return (unsigned char)lines->bytes[lines->at++];
}

bool text_lines_next(struct text_lines *lines, char *line, size_t size)
{
	int byte = next_byte(lines);
	size_t length = 0;

	if (byte < 0)
		return false;
	for (; byte >= 0 && byte != '\n'; byte = next_byte(lines))
		if (length < size - 1)
			line[length++] = (char)byte;
	line[length] = 0;
	return true;
}

void text_lines_close(struct text_lines *lines)
{
	if (lines->fd < 0)
		return;
	close(lines->fd);
	lines->fd = -1;
	cancellation_restore(lines->cancel);
}
