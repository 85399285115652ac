/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/sysfs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes; more than any value that the daemon uses has. */
#define LINE_ROOM 256

/* A call has failed for want of descriptors or memory since the last sysfs_take_shortage(). */
static bool is_short;

void sysfs_note_error(int err)
{
	is_short |= err == EMFILE || err == ENFILE || err == ENOMEM;
}

bool sysfs_take_shortage(void)
{
	const bool was_short = is_short;

	is_short = false;
	return was_short;
}

DIR *sysfs_open_dir(const char *path)
{
	DIR *dir = opendir(path);

	if (!dir)
		sysfs_note_error(errno);
	return dir;
}

static int format_path(char path[PATH_MAX], const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static int format_path(char path[PATH_MAX], const char *fmt, va_list ap)
{
	return vsnprintf(path, PATH_MAX, fmt, ap) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Reads the beginning of a file. Returns the number of bytes, at most `size`, or a negative errno
 * value. */
static ssize_t read_bytes(const char *path, char *bytes, size_t size)
{
	/* O_NONBLOCK: a FIFO in another daemon's tree must not block this daemon. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, bytes, size);
	if (n < 0) {
		n = -errno;
		sysfs_note_error(errno);
	}
	if (fd >= 0)
		close(fd);
	return n;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Copies a line without blanks at its ends. The line has n bytes at `line` and needs no NUL.
 * Returns as sysfs_read_text. */
static int copy_line(char *text, size_t size, const char *line, size_t n)
{
	while (n && is_blank(*line))
		line++, n--;
	while (n && is_blank(line[n - 1]))
		n--;
	if (n >= size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < n; i++)
		if (line[i] < ' ' || line[i] > '~')
			return -EINVAL;
	memcpy(text, line, n);
	text[n] = '\0';
	return 0;
}

static int read_line(char *text, size_t size, const char *path)
{
	char line[LINE_ROOM];
	ssize_t n = read_bytes(path, line, sizeof(line));
	const char *end;

	if (n < 0)
		return (int)n;
	end = memchr(line, '\n', (size_t)n);
	if (!end && n == (ssize_t)sizeof(line))
		return -ENAMETOOLONG;
	return copy_line(text, size, line, end ? (size_t)(end - line) : (size_t)n);
}

int sysfs_read_text(char *text, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int rc;

	text[0] = '\0';
	va_start(ap, fmt);
	rc = format_path(path, fmt, ap);
	va_end(ap);
	return rc ? rc : read_line(text, size, path);
}

uint32_t sysfs_read_number(const char *fmt, ...)
{
	char path[PATH_MAX], text[16];
	unsigned long number;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = format_path(path, fmt, ap);
	va_end(ap);
	if (rc || read_line(text, sizeof(text), path) || text[0] < '0' || text[0] > '9')
		return 0;
	number = strtoul(text, NULL, 10);
	return number > UINT32_MAX ? 0 : (uint32_t)number;
}

int sysfs_read_link(char *text, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *name;
	va_list ap;
	ssize_t n;
	int rc;

	text[0] = '\0';
	va_start(ap, fmt);
	rc = format_path(path, fmt, ap);
	va_end(ap);
	if (rc)
		return rc;
	n = readlink(path, target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(target))
		return -ENAMETOOLONG;
	name = memrchr(target, '/', (size_t)n);
	name = name ? name + 1 : target;
	return copy_line(text, size, name, (size_t)(target + n - name));
}
