/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes of queue pairs whose numbers an HCA has chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/qpn_process.h"

#define N 5000u

static void qpn_finds_its_process(void **state)
{
	struct qpn_processes processes = {0};
	uint32_t process;

	(void)state;
	assert_false(qpn_process_find(&processes, 17, &process));
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(qpn_process_set(&processes, 0xfffffe - i, i % 4096), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_true(qpn_process_find(&processes, 0xfffffe - i, &process));
		assert_int_equal(process, i % 4096);
	}
	assert_false(qpn_process_find(&processes, 17, &process));
	assert_false(qpn_process_find(&processes, 0xfffffe - N, &process));
	qpn_processes_free(&processes);
}

static void qpn_may_pass_to_another_process(void **state)
{
	struct qpn_processes processes = {0};
	uint32_t process;

	(void)state;
	assert_int_equal(qpn_process_set(&processes, 17, 1), 0);
	assert_int_equal(qpn_process_set(&processes, 17, 2), 0);
	assert_int_equal(processes.n, 1);
	assert_true(qpn_process_find(&processes, 17, &process));
	assert_int_equal(process, 2);
	qpn_processes_free(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qpn_finds_its_process),
		cmocka_unit_test(qpn_may_pass_to_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
