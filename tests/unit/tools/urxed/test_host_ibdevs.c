/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links to the kernel's RDMA devices in the run directory's tree. */
#include <errno.h>
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

#include "common/rundir.h"
#include "urxed/kernel/host_ibdevs.h"
#include "urxed/sysfs_tree.h"

static char top[] = "/tmp/test-ibdevs-XXXXXX";
static char sys[sizeof(top) + 8];
static struct host host;

static void make_dir(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sys/class/%s", top, name);
	return access(path, F_OK) == 0;
}

static bool is_link(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sys/class/%s", top, name);
	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

static int setup(void **state)
{
	(void)state;
	host_init(&host);
	if (!mkdtemp(top) || host_add_generated(&host) || sysfs_tree_create(top, &host, 0))
		return -1;
	snprintf(sys, sizeof(sys), "%s/kernel", top);
	return mkdir(sys, 0755);
}

static int teardown(void **state)
{
	(void)state;
	rundir_remove(top, "kernel");
	sysfs_tree_remove(top);
	return rmdir(top);
}

static void link_succeeds_without_kernel_devices(void **state)
{
	(void)state;
	assert_int_equal(host_ibdevs_link(top, sys), 0);
	assert_true(is_there("infiniband/urxe0"));
	assert_true(is_there("infiniband_verbs/uverbs1024/ibdev"));
}

static void links_follow_kernel_devices(void **state)
{
	(void)state;
	make_dir(sys, "class");
	make_dir(sys, "class/infiniband");
	make_dir(sys, "class/infiniband/rxe0");
	make_dir(sys, "class/infiniband/urxe0"); /* a kernel device that has urxe's name */
	make_dir(sys, "class/infiniband_verbs");
	make_dir(sys, "class/infiniband_verbs/uverbs0");
	make_dir(sys, "class/infiniband_verbs/uverbs0/device");
	for (int i = 0; i < 2; i++) { /* the second call finds no change */
		assert_int_equal(host_ibdevs_link(top, sys), 0);
		assert_true(is_link("infiniband/rxe0"));
		assert_true(is_there("infiniband_verbs/uverbs0/device"));
		assert_false(is_link("infiniband/urxe0"));
		assert_true(is_there("infiniband/urxe0/node_guid"));
	}
	assert_int_equal(rundir_remove(sys, "class/infiniband/rxe0"), 0);
	assert_int_equal(rundir_remove(sys, "class/infiniband_verbs"), 0);
	assert_int_equal(host_ibdevs_link(top, sys), 0);
	assert_false(is_link("infiniband/rxe0"));
	assert_false(is_link("infiniband_verbs/uverbs0"));
	assert_true(is_there("infiniband_verbs/abi_version"));
}

static void link_fails_without_a_tree(void **state)
{
	(void)state;
	assert_int_equal(host_ibdevs_link(sys, sys), -ENOENT);
}

/* Removing the tree removes links, not the directories that they point to. */
static void removing_the_tree_keeps_kernel_directories(void **state)
{
	char path[PATH_MAX];

	(void)state;
	make_dir(sys, "class/infiniband/rxe1");
	make_dir(sys, "class/infiniband/rxe1/ports");
	assert_int_equal(host_ibdevs_link(top, sys), 0);
	sysfs_tree_remove(top);
	assert_false(is_there("infiniband/rxe1"));
	snprintf(path, sizeof(path), "%s/class/infiniband/rxe1/ports", sys);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_succeeds_without_kernel_devices),
		cmocka_unit_test(links_follow_kernel_devices),
		cmocka_unit_test(link_fails_without_a_tree),
		cmocka_unit_test(removing_the_tree_keeps_kernel_directories),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
