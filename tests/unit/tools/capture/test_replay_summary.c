/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The summary of urxe replay: the name of the file may come from anybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "capture/replay_summary.h"

#define HOSTILE "a\033[2J\177\xc2\x9b\xe2\x80\xae.pcap"

static char text[4096];

/* What the function prints on standard output. */
static void capture_output(void (*print)(const struct replay_summary *s))
{
	const struct replay_summary summary = {.file = HOSTILE, .flows = flow_table_create()};
	int file = memfd_create("output", MFD_CLOEXEC), output;
	ssize_t n;

	fflush(stdout);
	output = dup(STDOUT_FILENO);
	assert_true(file >= 0 && output >= 0 && dup2(file, STDOUT_FILENO) >= 0);
	print(&summary);
	fflush(stdout);
	dup2(output, STDOUT_FILENO);
	close(output);
	n = pread(file, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	close(file);
	flow_table_destroy(summary.flows);
}

static void assert_ascii(void)
{
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

static void summary_has_no_control_characters(void **state)
{
	(void)state;
	capture_output(replay_summary_print);
	assert_ascii();
}

static void json_has_the_name_in_escapes(void **state)
{
	json_t *found;

	(void)state;
	capture_output(replay_summary_print_json);
	assert_ascii();
	found = json_loads(text, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(found, "file")), HOSTILE);
	json_decref(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summary_has_no_control_characters),
		cmocka_unit_test(json_has_the_name_in_escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
