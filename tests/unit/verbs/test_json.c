/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* JSON text that verbs/ writes, parsed by another implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "session/json.h"

static json_t *read_back(struct json_text *j)
{
	json_t *value;

	assert_false(j->failed);
	value = json_loadb(j->text, j->len, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	free(j->text);
	return value;
}

static void written_json_is_parsed_to_the_same_values(void **state)
{
	struct json_text j = {0};
	json_t *value, *expected;

	(void)state;
	json_put_open(&j, NULL, '{');
	json_put_number(&j, "big", INT64_MAX);
	json_put_open(&j, "list", '[');
	json_put_number(&j, NULL, 0);
	json_put_bool(&j, NULL, true);
	json_put_open(&j, NULL, '{');
	json_put_close(&j, '}');
	json_put_open(&j, NULL, '[');
	json_put_close(&j, ']');
	json_put_null(&j, NULL);
	json_put_close(&j, ']');
	json_put_bool(&j, "no", false);
	json_put_close(&j, '}');
	value = read_back(&j);
	expected = json_pack("{s:I, s:[i, b, {}, [], n], s:b}", "big", (json_int_t)INT64_MAX,
			     "list", 0, 1, "no", 0);
	assert_true(json_equal(value, expected));
	json_decref(expected);
	json_decref(value);
}

/* A program's name may consist of any bytes. */
static void unprintable_bytes_in_strings_become_question_marks(void **state)
{
	struct json_text j = {0};
	char all[256];
	json_t *value;
	int i;

	(void)state;
	for (i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	json_put_string(&j, NULL, all);
	value = read_back(&j);
	assert_int_equal(json_string_length(value), 255);
	for (i = 0; i < 255; i++)
		assert_int_equal(json_string_value(value)[i],
				 all[i] >= ' ' && all[i] <= '~' ? all[i] : '?');
	json_decref(value);
}

static void json_text_grows_beyond_its_first_room(void **state)
{
	struct json_text j = {0};
	json_t *value;
	int i;

	(void)state;
	json_put_open(&j, NULL, '[');
	for (i = 0; i < 100000; i++)
		json_put_number(&j, NULL, (uint64_t)i);
	json_put_close(&j, ']');
	value = read_back(&j);
	assert_int_equal(json_array_size(value), 100000);
	assert_int_equal(json_integer_value(json_array_get(value, 99999)), 99999);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_json_is_parsed_to_the_same_values),
		cmocka_unit_test(unprintable_bytes_in_strings_become_question_marks),
		cmocka_unit_test(json_text_grows_beyond_its_first_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
