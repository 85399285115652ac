/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Members of JSON objects, by key. */
#ifndef URXE_COMMON_JSON_FIELDS_H
#define URXE_COMMON_JSON_FIELDS_H

#include <jansson.h>

/* Returns the text of a member. NULL: the object has no such member, or the member is no text. */
static inline const char *json_get_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/*
 * Returns the integer of a member. 0: the object has no such member, or the member is no integer.
 */
static inline json_int_t json_get_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* A new value: null for an empty text. */
static inline json_t *json_text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

/* A new value: null for 0. */
static inline json_t *json_number_or_null(json_int_t number)
{
	return number ? json_integer(number) : json_null();
}

#endif
