/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096

static void append_text(struct json_text *j, const char *text, size_t len)
{
	size_t room = j->room ? j->room : FIRST_ROOM;
	char *more;

	while (room - j->len < len)
		room *= 2;
	if (room != j->room && !j->failed) {
		more = realloc(j->text, room);
		j->failed = !more;
		j->text = more ? more : j->text;
		j->room = more ? room : j->room;
	}
	if (j->failed)
		return;
	memcpy(j->text + j->len, text, len);
	j->len += len;
}

static void append_quoted(struct json_text *j, const char *text)
{
	append_text(j, "\"", 1);
	for (; *text; text++) {
		char c = *text >= ' ' && *text <= '~' ? *text : '?';

		if (c == '"' || c == '\\')
			append_text(j, "\\", 1);
		append_text(j, &c, 1);
	}
	append_text(j, "\"", 1);
}

/* Writes what precedes a value: a comma, unless it is the first, and the key, if any. */
static void begin_value(struct json_text *j, const char *key)
{
	char last = j->len ? j->text[j->len - 1] : '{';

	if (last != '{' && last != '[')
		append_text(j, ",", 1);
	if (!key)
		return;
	append_quoted(j, key);
	append_text(j, ":", 1);
}

void json_put_open(struct json_text *j, const char *key, char bracket)
{
	begin_value(j, key);
	append_text(j, &bracket, 1);
}

void json_put_close(struct json_text *j, char bracket)
{
	append_text(j, &bracket, 1);
}

void json_put_number(struct json_text *j, const char *key, uint64_t value)
{
	char text[24];

	begin_value(j, key);
	append_text(j, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value));
}

void json_put_bool(struct json_text *j, const char *key, bool value)
{
	begin_value(j, key);
	append_text(j, value ? "true" : "false", value ? 4 : 5);
}

void json_put_string(struct json_text *j, const char *key, const char *value)
{
	begin_value(j, key);
	append_quoted(j, value);
}

void json_put_null(struct json_text *j, const char *key)
{
	begin_value(j, key);
	append_text(j, "null", 4);
}
