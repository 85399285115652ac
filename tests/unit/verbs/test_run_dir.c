/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/run_dir.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The program looks for its device before urxed has written the run directory. */
static void the_other_name_is_found_later(void **state)
{
	static const char *const names[] = {"", "/dev", "/dev/infiniband",
					    "/dev/infiniband/uverbs1025"};
	char dir[] = "/tmp/urxe-run-dir-XXXXXX", path[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("URXE_DIR", dir, 1);
	assert_string_equal(run_dir_uverbs_name(), "uverbs1024");
	for (int i = 1; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_string_equal(run_dir_uverbs_name(), "uverbs1025");
	for (int i = 3; i >= 0; i--) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i]);
		assert_int_equal(rmdir(path), 0);
	}
	assert_string_equal(run_dir_uverbs_name(), "uverbs1025");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_other_name_is_found_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
