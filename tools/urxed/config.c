/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS " \t\r\v\f"

struct config {
	struct options *options;
	const char *name;
	uint32_t line;
	uint32_t given[OPTIONS]; /* number of the line that set each option last; 0 = none */
	char *error;
};

static int format_error(const struct config *c, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int format_error(const struct config *c, int rc, const char *fmt, ...)
{
	int n = snprintf(c->error, OPTIONS_ERROR, "%s:%u: ", c->name, c->line);
	va_list ap;

	va_start(ap, fmt);
	if (n < OPTIONS_ERROR)
		vsnprintf(c->error + n, (size_t)(OPTIONS_ERROR - n), fmt, ap);
	va_end(ap);
	return rc;
}

static char *skip_blanks(char *s)
{
	return s + strspn(s, BLANKS);
}

static void cut_blanks(char *s)
{
	size_t len = strlen(s);

	while (len && strchr(BLANKS, s[len - 1]))
		s[--len] = '\0';
}

/* Cuts the comment off a line. A comment begins at a '#' at the start of the line or behind white
 * space. */
static void cut_comment(char *s)
{
	for (char *p = s; (p = strchr(p, '#')); p++)
		if (p == s || strchr(BLANKS, p[-1])) {
			*p = '\0';
			break;
		}
}

/* Ends the option's name with a NUL and returns the value behind the name; NULL: the line has
 * neither a value nor '='. */
static char *split_line(char *line)
{
	char *end = line + strcspn(line, BLANKS "=");
	char *value = skip_blanks(end);
	bool equals = *value == '=';

	if (equals)
		value = skip_blanks(value + 1);
	else if (!*value)
		return NULL;
	*end = '\0';
	return value;
}

static int parse_line(struct config *c, char *line)
{
	const struct options_row *row;
	char text[OPTIONS_ERROR];
	uint32_t *given;
	char *value;
	int rc;

	cut_comment(line);
	cut_blanks(line);
	line = skip_blanks(line);
	if (!*line)
		return 0;
	value = split_line(line);
	row = options_find(line);
	if (!row)
		return format_error(c, -EINVAL, "unknown option %s", line);
	given = &c->given[row - options_rows];
	if (*given && !row->repeats)
		return format_error(c, -EINVAL, "option %s is already set on line %u", row->name,
				    *given);
	*given = c->line;
	rc = options_set(c->options, row, value, text);
	return rc ? format_error(c, rc, "%s", text) : 0;
}

int config_parse(struct options *o, const char *name, char *text, size_t len,
		 char error[OPTIONS_ERROR])
{
	struct config c = {.options = o, .name = name, .error = error};
	char *end = text + len, *next;
	int rc = 0;

	*end = '\0';
	for (; text < end && !rc; text = next) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		c.line++;
		next = newline ? newline + 1 : end;
		if (newline)
			*newline = '\0';
		if (strlen(text) != (size_t)((newline ? newline : end) - text))
			rc = format_error(&c, -EINVAL, "the line contains a NUL byte");
		else
			rc = parse_line(&c, text);
	}
	return rc;
}

/* Reads the file into `text`. Returns the number of bytes, CONFIG_MAX + 1 if the file is too long,
 * or a negative errno value. */
static ssize_t read_config_file(const char *name, char *text)
{
	/* O_NONBLOCK: a FIFO without a writer must not block the daemon. */
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = 0, len = 0;

	if (fd < 0)
		return -errno;
	while (len <= CONFIG_MAX &&
	       (got = read(fd, text + len, (size_t)(CONFIG_MAX + 1 - len))) > 0)
		len += got;
	if (got < 0)
		len = -errno;
	close(fd);
	return len;
}

int config_read(struct options *o, const char *name, char **text, char error[OPTIONS_ERROR])
{
	char *buffer = malloc(CONFIG_MAX + 1);
	ssize_t len = buffer ? read_config_file(name, buffer) : -ENOMEM;
	int rc;

	*text = NULL;
	if (len < 0) {
		snprintf(error, OPTIONS_ERROR, "cannot read %s: %s", name, strerror((int)-len));
		rc = (int)len;
	} else if (len > CONFIG_MAX) {
		snprintf(error, OPTIONS_ERROR, "%s is longer than %d bytes", name, CONFIG_MAX);
		rc = -EFBIG;
	} else {
		rc = config_parse(o, name, buffer, (size_t)len, error);
	}
	if (rc)
		free(buffer);
	else
		*text = buffer;
	return rc;
}
