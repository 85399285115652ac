/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes a JSON text (RFC 8259) into memory that grows. For state_document.c. */
#ifndef URXE_VERBS_SESSION_JSON_H
#define URXE_VERBS_SESSION_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero before the first call; the caller frees text. */
struct json_text {
	char *text; /* not terminated by a NUL */
	size_t len;
	size_t room;
	bool failed; /* out of memory: the text is incomplete */
};

/* These append to the text. `key`: the member's name; NULL for an element of an array and for the
 * outermost value. `bracket`: '{' or '[', and '}' or ']' to close. */
void json_put_open(struct json_text *j, const char *key, char bracket);
void json_put_close(struct json_text *j, char bracket);
void json_put_number(struct json_text *j, const char *key, uint64_t value);
void json_put_bool(struct json_text *j, const char *key, bool value);
/* Appends `value`, with '?' for each byte that is not printable ASCII. */
void json_put_string(struct json_text *j, const char *key, const char *value);
void json_put_null(struct json_text *j, const char *key);

#endif
