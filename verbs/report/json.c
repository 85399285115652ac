/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "report/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096

static void put(struct json_text *j, const char *text, size_t len)
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

static void put_quoted(struct json_text *j, const char *text)
{
	put(j, "\"", 1);
	for (; *text; text++) {
		char c = *text >= ' ' && *text <= '~' ? *text : '?';

		if (c == '"' || c == '\\')
			put(j, "\\", 1);
		put(j, &c, 1);
	}
	put(j, "\"", 1);
}

/* What stands in front of a value. */
static void begin(struct json_text *j, const char *key)
{
	char last = j->len ? j->text[j->len - 1] : '{';

	if (last != '{' && last != '[')
		put(j, ",", 1);
	if (!key)
		return;
	put_quoted(j, key);
	put(j, ":", 1);
}

void json_put_open(struct json_text *j, const char *key, char bracket)
{
	begin(j, key);
	put(j, &bracket, 1);
}

void json_put_close(struct json_text *j, char bracket)
{
	put(j, &bracket, 1);
}

void json_put_number(struct json_text *j, const char *key, uint64_t value)
{
	char text[24];

	begin(j, key);
	put(j, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, value));
}

void json_put_bool(struct json_text *j, const char *key, bool value)
{
	begin(j, key);
	put(j, value ? "true" : "false", value ? 4 : 5);
}

void json_put_string(struct json_text *j, const char *key, const char *value)
{
	begin(j, key);
	put_quoted(j, value);
}

void json_put_null(struct json_text *j, const char *key)
{
	begin(j, key);
	put(j, "null", 4);
}
