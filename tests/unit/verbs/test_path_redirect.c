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
#include <unistd.h>

#include <cmocka.h>

#include "interpose/device_node.h"
#include "interpose/path_redirect.h"

static const struct {
	const char *path;
	const char *expected; /* NULL: left alone */
} rows[] = {
	{"/sys/class/infiniband", "/run/x/sys/class/infiniband"},
	{"/sys/class/infiniband/", "/run/x/sys/class/infiniband/"},
	{"/sys/class/infiniband/urxe0/ports/1", "/run/x/sys/class/infiniband/urxe0/ports/1"},
	{"/sys/class/infiniband_verbs", "/run/x/sys/class/infiniband_verbs"},
	{"/sys/class/infiniband_verbs/uverbs0/dev",
	 "/run/x/sys/class/infiniband_verbs/uverbs0/dev"},
	{"/sys/class/misc/rdma_cm/abi_version", "/run/x/sys/class/misc/rdma_cm/abi_version"},
	{"/dev/infiniband/uverbs1024", "/run/x/dev/infiniband/uverbs1024"},
	{"/dev/infiniband/rdma_cm", "/run/x/dev/infiniband/rdma_cm"},
	{"/dev/infiniband/uverbs0", NULL},
	{"/dev/infiniband/uverbs1025", NULL},
	{"/sys/class/infiniband_mad", NULL},
	{"/sys/class/infiniband2", NULL},
	{"/sys/class/infini", NULL},
	{"/sys/class", NULL},
	{"/dev/infinibands", NULL},
	{"/dev/null", NULL},
	{"sys/class/infiniband", NULL},
	{"", NULL},
};

static void paths_of_the_device_lead_to_the_daemon(void **state)
{
	char buf[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = path_redirect(rows[i].path, buf);

		if (rows[i].expected)
			assert_string_equal(got, rows[i].expected);
		else
			assert_ptr_equal(got, rows[i].path);
	}
	assert_null(path_redirect(NULL, buf));
}

static void redirects_the_directory_that_the_kernel_lacks(void **state)
{
	static const char *const paths[] = {"/dev/infiniband", "/dev/infiniband/"};
	const bool exists = !access("/dev/infiniband", F_OK);
	char buf[PATH_MAX], expected[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(expected, sizeof(expected), "%s%s", exists ? "" : "/run/x", paths[i]);
		assert_string_equal(path_redirect(paths[i], buf), expected);
	}
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

	setenv("URXE_DIR", "/run/x", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
