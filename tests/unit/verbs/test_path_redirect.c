/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Paths that the library redirects to the daemon's run directory. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "interpose/device_node.h"
#include "interpose/path_redirect.h"

static char run_dir[] = "/tmp/urxe-test-redirect-XXXXXX";

/* With sys/ paths lead to the run directory also where the kernel has RDMA devices. */
static int setup(void **state)
{
	char path[PATH_MAX];

	(void)state;
	if (!mkdtemp(run_dir) || setenv("URXE_DIR", run_dir, 1))
		return -1;
	snprintf(path, sizeof(path), "%s/sys", run_dir);
	return mkdir(path, 0700);
}

static int teardown(void **state)
{
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/sys", run_dir);
	return rmdir(path) || rmdir(run_dir);
}

static const char *const redirected[] = {"/sys/class/infiniband",
					 "/sys/class/infiniband/",
					 "/sys/class/infiniband/urxe0/ports/1",
					 "/sys/class/infiniband_verbs",
					 "/sys/class/infiniband_verbs/uverbs0/dev",
					 "/sys/class/misc/rdma_cm/abi_version",
					 "/dev/infiniband/uverbs1024",
					 "/dev/infiniband/rdma_cm"};
static const char *const left_alone[] = {"/dev/infiniband/uverbs0",   "/dev/infiniband/uverbs1025",
					 "/sys/class/infiniband_mad", "/sys/class/infiniband2",
					 "/sys/class/infini",         "/sys/class",
					 "/dev/infinibands",          "/dev/null",
					 "sys/class/infiniband",      ""};

static void expect_redirected(const char *path)
{
	char buf[PATH_MAX], expected[PATH_MAX];

	snprintf(expected, sizeof(expected), "%s%s", run_dir, path);
	assert_string_equal(path_redirect(path, buf), expected);
}

static void paths_of_the_device_lead_to_the_daemon(void **state)
{
	char buf[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(redirected) / sizeof(redirected[0]); i++)
		expect_redirected(redirected[i]);
	for (size_t i = 0; i < sizeof(left_alone) / sizeof(left_alone[0]); i++)
		assert_ptr_equal(path_redirect(left_alone[i], buf), left_alone[i]);
	assert_null(path_redirect(NULL, buf));
}

static void redirects_the_directory_that_the_kernel_lacks(void **state)
{
	static const char *const paths[] = {"/dev/infiniband", "/dev/infiniband/"};
	const bool exists = !access("/dev/infiniband", F_OK);
	char buf[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (exists)
			assert_string_equal(path_redirect(paths[i], buf), paths[i]);
		else
			expect_redirected(paths[i]);
}

static void too_long_path_is_not_redirected(void **state)
{
	static const char prefix[] = "/sys/class/infiniband/";
	char path[PATH_MAX], buf[PATH_MAX];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, prefix, sizeof(prefix) - 1);
	assert_ptr_equal(path_redirect(path, buf), path);
}

static void device_nodes_are_recognized_by_path(void **state)
{
	(void)state;
	assert_int_equal(device_by_path("/dev/infiniband/uverbs1024"), DEVICE_UVERBS);
	assert_int_equal(device_by_path("/dev/infiniband/rdma_cm"), DEVICE_RDMACM);
	assert_int_equal(device_by_path("/dev/infiniband/uverbs0"), DEVICE_NONE);
	assert_int_equal(device_by_path("/dev/infiniband"), DEVICE_NONE);
	assert_int_equal(device_by_path(NULL), DEVICE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_the_device_lead_to_the_daemon),
		cmocka_unit_test(redirects_the_directory_that_the_kernel_lacks),
		cmocka_unit_test(too_long_path_is_not_redirected),
		cmocka_unit_test(device_nodes_are_recognized_by_path),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
