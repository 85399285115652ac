/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Text of other processes and files on its way to a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/printable.h"

static void assert_shown(const char *text, const char *expected)
{
	char shown[64];

	printable_copy(shown, sizeof(shown), text);
	assert_string_equal(shown, expected);
}

static void letters_of_any_script_are_shown(void **state)
{
	(void)state;
	assert_shown("", "");
	assert_shown("eth0 ~", "eth0 ~");
	assert_shown("\u00e4\u20ac\u05d0\U0001f600", "\u00e4\u20ac\u05d0\U0001f600");
}

static void terminal_controls_are_replaced(void **state)
{
	(void)state;
	assert_shown("a\033[2J\a\r\n\tb", "a?[2J????b");
	assert_shown("\177", "?");
	/* C1 as single bytes and in UTF-8: CSI, OSC, ST. */
	assert_shown("\x9b"
		     "31m",
		     "?31m");
	assert_shown("\xc2\x9b"
		     "31m\xc2\x9d\xc2\x9c",
		     "?31m??");
}

static void bidirectional_and_invisible_characters_are_replaced(void **state)
{
	(void)state;
	assert_shown("a\u202eb\u2066c\u200fd\u061ce", "a?b?c?d?e");
	assert_shown("\u200b\ufeff\u2028\u00ad\U000e0041", "?????");
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
	(void)state;
	assert_shown("\xff\xfe", "??");
	assert_shown("a\xc3", "a?");                             /* cut short */
	assert_shown("\xe2\x82z", "??z");                        /* likewise */
	assert_shown("\xc0\x9b\xe0\x80\x9b", "?????");           /* longer than needed */
	assert_shown("\xed\xa0\x80\xf4\x90\x80\x80", "???????"); /* surrogate, too large */
}

static void text_is_cut_between_characters(void **state)
{
	char shown[4];

	(void)state;
	printable_copy(shown, sizeof(shown), "ab\u00e4");
	assert_string_equal(shown, "ab");
	printable_copy(shown, sizeof(shown), "a\u00e4b");
	assert_string_equal(shown, "a\u00e4");
	printable_copy(shown, sizeof(shown), "abcdef");
	assert_string_equal(shown, "abc");
}

static void json_is_ascii(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	printable_json(out, "a\"\\\033\177\xc2\x9b\u00e4\U0001f600\xff");
	fclose(out);
	assert_string_equal(text, "\"a\\\"\\\\\\u001b\\u007f\\u009b\\u00e4\\ud83d\\ude00\\ufffd\"");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_of_any_script_are_shown),
		cmocka_unit_test(terminal_controls_are_replaced),
		cmocka_unit_test(bidirectional_and_invisible_characters_are_replaced),
		cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(json_is_ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
