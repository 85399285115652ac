/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"

#define T0 5000000000u

static struct log_ratelimit budget;
static int file, standard_error;

/* Redirects standard error to a file during a test. */
static int setup(void **state)
{
	(void)state;
	budget = (struct log_ratelimit){0};
	file = memfd_create("log", MFD_CLOEXEC);
	standard_error = dup(STDERR_FILENO);
	return file < 0 || standard_error < 0 || dup2(file, STDERR_FILENO) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	close(file);
	return 0;
}

static uint32_t lines(void)
{
	char text[1 << 16];
	ssize_t len = pread(file, text, sizeof(text), 0);
	uint32_t n = 0;

	assert_true(len >= 0);
	while (len-- > 0)
		n += text[len] == '\n';
	return n;
}

static void rate_limit_is_a_burst_then_one_a_second(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < LOG_BURST + 7; i++)
		log_ratelimited(&budget, T0, "line %u", i);
	assert_int_equal(lines(), LOG_BURST);
	log_ratelimited(&budget, T0 + LOG_EVERY_NS - 1, "too early");
	assert_int_equal(lines(), LOG_BURST);
	log_ratelimited(&budget, T0 + LOG_EVERY_NS, "again");
	log_ratelimited(&budget, T0 + LOG_EVERY_NS, "too many");
	/* One more line tells how many were suppressed. */
	assert_int_equal(lines(), LOG_BURST + 2);
}

static void burst_is_available_again_later(void **state)
{
	const uint64_t later = T0 + (uint64_t)LOG_BURST * LOG_EVERY_NS;
	uint32_t i;

	(void)state;
	for (i = 0; i < LOG_BURST; i++)
		log_ratelimited(&budget, T0, "line %u", i);
	for (i = 0; i < LOG_BURST; i++)
		log_ratelimited(&budget, later, "line %u", i);
	log_ratelimited(&budget, later, "too many");
	assert_int_equal(lines(), 2 * LOG_BURST);
	/* A time in the past adds nothing to the budget. */
	log_ratelimited(&budget, T0, "too early");
	assert_int_equal(lines(), 2 * LOG_BURST);
}

/* Names of processes and files may come from anybody. */
static void control_characters_are_replaced(void **state)
{
	char text[128] = "";

	(void)state;
	log_line("process %s ended", "a\033[2J\n\xc2\x9b\xff");
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "urxe: process a?[2J??? ended\n");
}

/* 2026-01-02T03:04:05.678Z urxe: started */
static void a_time_precedes_the_line(void **state)
{
	int year, month, day, hour, minute, second, millisecond, end = 0;
	char text[128] = "";

	(void)state;
	log_has_times = true;
	log_line("started");
	log_has_times = false;
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour,
				&minute, &second, &millisecond, &end),
			 7);
	assert_int_equal(end, 24);
	assert_string_equal(text + end, " urxe: started\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rate_limit_is_a_burst_then_one_a_second, setup,
						teardown),
		cmocka_unit_test_setup_teardown(burst_is_available_again_later, setup, teardown),
		cmocka_unit_test_setup_teardown(control_characters_are_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(a_time_precedes_the_line, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
