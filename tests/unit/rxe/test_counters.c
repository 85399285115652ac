/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of drops and events: each counter has a printable name, and no two have the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/counters.h>

static const char *drop_name(unsigned i)
{
	return urxe_drop_name(i);
}

static const char *drop_text(unsigned i)
{
	return urxe_drop_text(i);
}

static const char *event_name(unsigned i)
{
	return urxe_event_name(i);
}

static const char *event_text(unsigned i)
{
	return urxe_event_text(i);
}

static void check_names(const char *(*name)(unsigned), const char *(*text)(unsigned), unsigned n)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

	for (unsigned i = 0; i < n; i++) {
		assert_non_null(name(i));
		assert_true(strlen(name(i)) > 0);
		assert_int_equal(strspn(name(i), allowed), strlen(name(i)));
		assert_non_null(text(i));
		assert_true(strlen(text(i)) > 0);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(name(i), name(j));
	}
	assert_null(name(n));
	assert_null(text(n));
	assert_null(name(~0u));
	assert_null(text(~0u));
}

static void test_drop_names_are_unique(void **state)
{
	(void)state;
	check_names(drop_name, drop_text, URXE_DROP_COUNT);
	assert_string_equal(urxe_drop_name(URXE_DROP_BAD_ICRC), "bad_icrc");
	assert_string_equal(urxe_drop_name(URXE_DROP_BAD_RESPONSE), "bad_response");
}

static void test_event_names_are_unique(void **state)
{
	(void)state;
	check_names(event_name, event_text, URXE_EVENT_COUNT);
	assert_string_equal(urxe_event_name(0), "rx_packets");
	assert_string_equal(urxe_event_name(URXE_EVENT_CQ_OVERFLOW), "cq_overflow");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_names_are_unique),
		cmocka_unit_test(test_event_names_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
