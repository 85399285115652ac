/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Texts, line by line; the parser allocates no memory. */
#include "process/text_lines.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory/proc_maps.h"

#ifndef __SANITIZE_ADDRESS__

static unsigned int asked;

/* The C library allocates by this name. */
void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
	asked++;
	return __libc_malloc(size);
}

static void test_parser_allocates_no_memory(void **state)
{
	struct mapping m = {0};
	struct text_lines maps;
	void *volatile kept;
	unsigned int before;

	(void)state;
	before = asked;
	kept = malloc(1);
	free(kept);
	assert_int_equal(asked, before + 1);
	before = asked;
	proc_maps_open(&maps);
	assert_false(proc_maps_next_attached(&maps, (uintptr_t)&before, &m));
	text_lines_close(&maps);
	assert_int_equal(asked, before);
}

#else

/* A sanitizer has its own malloc, which cannot be replaced: only the plain build runs this test. */
static void test_parser_allocates_no_memory(void **state)
{
	(void)state;
	skip();
}

#endif

/* Opens a file with that text. */
static void lines_of(struct text_lines *lines, const char *text, size_t length)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	char path[32];

	assert_int_equal(write(fd, text, length), length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(text_lines_open(lines, path));
	close(fd);
}

static void test_long_lines_are_cut(void **state)
{
	char text[4096], line[16];
	struct text_lines lines;
	size_t at = 0;

	(void)state;
	at += (size_t)sprintf(text + at, "one\n\n");
	/* A line longer than one read. */
	memset(text + at, 'x', 3000);
	at += 3000;
	at += (size_t)sprintf(text + at, "\nlast");
	lines_of(&lines, text, at);
	assert_true(text_lines_next(&lines, line, sizeof(line)));
	assert_string_equal(line, "one");
	assert_true(text_lines_next(&lines, line, sizeof(line)));
	assert_string_equal(line, "");
	assert_true(text_lines_next(&lines, line, sizeof(line)));
	assert_string_equal(line, "xxxxxxxxxxxxxxx");
	assert_true(text_lines_next(&lines, line, sizeof(line)));
	assert_string_equal(line, "last");
	assert_false(text_lines_next(&lines, line, sizeof(line)));
	text_lines_close(&lines);
}

static void test_empty_and_missing_files_have_no_lines(void **state)
{
	struct text_lines lines;
	char line[16];

	(void)state;
	lines_of(&lines, "", 0);
	assert_false(text_lines_next(&lines, line, sizeof(line)));
	text_lines_close(&lines);
	assert_false(text_lines_open(&lines, "/proc/self/no such file"));
	assert_false(text_lines_next(&lines, line, sizeof(line)));
	text_lines_close(&lines);
}

/*
 * The thread has a pending cancellation, which must not end it before its last line. There it only
 * looks whether cancellation is enabled: a sanitizer's stack does not survive a cancelled thread.
 */
static void *read_when_cancelled(void *arg)
{
	bool *closed = arg;
	struct text_lines maps;
	struct mapping m;
	int state;

	pthread_cancel(pthread_self());
	proc_maps_open(&maps);
	while (proc_maps_next(&maps, &m))
		;
	text_lines_close(&maps);
	text_lines_open(&maps, "/proc/self/no such file");
	text_lines_close(&maps);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	*closed = state == PTHREAD_CANCEL_ENABLE;
	return arg;
}

/* open, read and close are cancellation points: the thread would leave the descriptor open. */
static void test_no_call_ends_a_cancelled_thread(void **state)
{
	bool closed = false;
	pthread_t thread;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_when_cancelled, &closed), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_true(closed);
	assert_ptr_equal(result, &closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parser_allocates_no_memory),
		cmocka_unit_test(test_long_lines_are_cut),
		cmocka_unit_test(test_empty_and_missing_files_have_no_lines),
		cmocka_unit_test(test_no_call_ends_a_cancelled_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
