/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether the host has a processor for each runnable thread: by lines of /proc/loadavg. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vm/host/spare_processor.h"

#define MS UINT64_C(1000000)
#define T0 UINT64_C(1000000000)

static void test_runnable_threads_are_read_from_the_line(void **state)
{
	(void)state;
	assert_int_equal(spare_processor_runnable("0.16 1.88 2.08 3/203 20215\n"), 3);
	assert_int_equal(spare_processor_runnable("0.16 1.88 2.08 1234/4000 1\n"), 1234);
	assert_int_equal(spare_processor_runnable("0.16 1.88\n"), 0);
	assert_int_equal(spare_processor_runnable("nonsense"), 0);
	assert_int_equal(spare_processor_runnable(""), 0);
}

/* Replaces the line that spare_processor_exists reads. */
static void write_line(const struct spare_processor *s, const char *line)
{
	assert_int_equal(ftruncate(s->loadavg, 0), 0);
	assert_int_equal(pwrite(s->loadavg, line, strlen(line), 0), strlen(line));
}

static void test_spare_if_each_runnable_thread_has_a_processor(void **state)
{
	struct spare_processor s = {.loadavg = fileno(tmpfile()), .processors = 2};
	static const struct {
		const char *line;
		bool spare;
	} cases[] = {
		{"0.1 0.1 0.1 1/9 1\n", true},
		{"0.1 0.1 0.1 2/9 1\n", true},
		{"0.1 0.1 0.1 3/9 1\n", false},
		{"0.1 0.1 0.1 0/9 1\n", false},
		{"nonsense", false},
		{"", false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_line(&s, cases[i].line);
		assert_int_equal(spare_processor_exists(&s, T0 + i * MS), cases[i].spare);
	}
	spare_processor_close(&s);
}

static void test_answers_are_a_millisecond_old_at_most(void **state)
{
	struct spare_processor s = {.loadavg = fileno(tmpfile()), .processors = 2};

	(void)state;
	write_line(&s, "0.1 0.1 0.1 1/9 1\n");
	assert_true(spare_processor_exists(&s, T0));
	write_line(&s, "0.1 0.1 0.1 3/9 1\n");
	assert_true(spare_processor_exists(&s, T0 + MS - 1));
	assert_false(spare_processor_exists(&s, T0 + MS));
	spare_processor_close(&s);
}

/* A host without /proc never has one. */
static void test_never_spare_without_proc(void **state)
{
	struct spare_processor s = {.loadavg = -1, .processors = 2};

	(void)state;
	assert_false(spare_processor_exists(&s, T0));
	spare_processor_close(&s);
}

static void test_processors_of_this_host_are_counted(void **state)
{
	struct spare_processor s;

	(void)state;
	spare_processor_open(&s);
	assert_true(s.loadavg >= 0);
	assert_true(s.processors > 0);
	/* As many processors as threads can ever exist: spare in any case. */
	s.processors = UINT32_MAX;
	assert_true(spare_processor_exists(&s, T0));
	s.processors = 0;
	assert_false(spare_processor_exists(&s, T0 + MS));
	spare_processor_close(&s);
	assert_false(spare_processor_exists(&s, T0 + 2 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runnable_threads_are_read_from_the_line),
		cmocka_unit_test(test_spare_if_each_runnable_thread_has_a_processor),
		cmocka_unit_test(test_answers_are_a_millisecond_old_at_most),
		cmocka_unit_test(test_never_spare_without_proc),
		cmocka_unit_test(test_processors_of_this_host_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
