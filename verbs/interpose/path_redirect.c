/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/path_redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "adapter/adapter.h"
#include "process/libc_real.h"
#include "process/log.h"
#include "process/run_dir.h"

#define NODE_DIR   "/dev/infiniband"
#define UVERBS_DIR "dev/infiniband/"

/* Prefixes of redirected paths, and their counterparts in the run directory. The first match
 * counts. */
static const struct {
	const char *prefix;
	const char *dir;
} redirected[] = {
	{"/sys/class/infiniband_verbs", VNIC_SYSFS_NAME "/class/infiniband_verbs"},
	{"/sys/class/infiniband", VNIC_SYSFS_NAME "/class/infiniband"},
	{"/sys/class/misc/rdma_cm", VNIC_SYSFS_NAME "/class/misc/rdma_cm"},
	{"/" UVERBS_DIR VNIC_UVERBS_NAME, UVERBS_DIR VNIC_UVERBS_NAME},
	{"/" UVERBS_DIR VNIC_UVERBS_OTHER, UVERBS_DIR VNIC_UVERBS_OTHER},
	{"/dev/infiniband/rdma_cm", "dev/infiniband/rdma_cm"},
	{NODE_DIR, "dev/infiniband"},
};

/* 0, or the errno value with which accesses to `name` in the run directory fail. */
static int access_error(const char *run_dir, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", run_dir, name) >= PATH_MAX)
		return 0;
	/* Checks as the effective user and groups, by which open(2) decides. */
	return REAL(faccessat)(AT_FDCWD, path, F_OK, AT_EACCESS) ? errno : 0;
}

/*
 * If the program will find no device in the run directory, logs the reason, at the first call only:
 * the daemon has ended, URXE_DIR names no run directory, or the program has given up the user or
 * group that the directory admits. libibverbs only says that the host has no device.
 */
static void check_run_dir(const char *run_dir)
{
	static atomic_bool checked;
	int saved = errno, error;

	if (atomic_exchange(&checked, true))
		return;
	error = access_error(run_dir, VNIC_SYSFS_NAME);
	if (error == EACCES)
		log_write("%s, named by URXE_DIR, cannot be read: %s", run_dir, strerror(error));
	else if (error)
		log_write("%s, named by URXE_DIR, is not the run directory of a running urxed "
			  "(%s): start programs by 'urxe run'",
			  run_dir, strerror(error));
	else if (access_error(run_dir, UVERBS_DIR) == EACCES)
		log_write("%s, named by URXE_DIR, does not admit this program's user: urxed "
			  "--group NAME admits the members of a group",
			  run_dir);
	errno = saved;
}

/* Whether the path is a uverbs node of another device than this library's. In a nested `urxe run`,
 * the other of liburxe.so and liburxe-outer.so plays that device. */
static bool is_foreign_node(const char *path)
{
	const char *name = path + strlen("/" UVERBS_DIR);

	return !strncmp(path, "/" UVERBS_DIR "uverbs", strlen("/" UVERBS_DIR "uverbs")) &&
	       strcmp(name, run_dir_uverbs_name());
}

/* Whether the host has /dev/infiniband. Then the program sees that directory, with the nodes of the
 * kernel's RDMA devices, and not its counterpart in the run directory. */
static bool has_kernel_nodes(void)
{
	const int saved = errno;
	const bool exists = !REAL(access)(NODE_DIR, F_OK);

	errno = saved;
	return exists;
}

/* Whether a path with this prefix is not redirected: the kernel has the prefix, and the run
 * directory has no sys/, because the daemon has ended. Overwrites buf. */
static bool is_left_to_kernel(const char *run_dir, const char *prefix, char buf[PATH_MAX])
{
	const int saved = errno;
	bool left = !REAL(access)(prefix, F_OK);

	snprintf(buf, PATH_MAX, "%s/" VNIC_SYSFS_NAME, run_dir);
	left = left && REAL(faccessat)(AT_FDCWD, buf, F_OK, AT_EACCESS) && errno == ENOENT;
	errno = saved;
	return left;
}

bool path_watched(const char *path)
{
	return path_may_be_watched(path) && run_dir_path() &&
	       (!strncmp(path, "/sys/class/", 11) || !strcmp(path, NODE_DIR) ||
		!strncmp(path, NODE_DIR "/", strlen(NODE_DIR "/")));
}

const char *path_redirect(const char *path, char buf[PATH_MAX])
{
	const char *dir = run_dir_path();

	if (!path_watched(path) || is_foreign_node(path))
		return path;
	for (unsigned int i = 0; i < sizeof(redirected) / sizeof(redirected[0]); i++) {
		size_t len = strlen(redirected[i].prefix);

		if (strncmp(path, redirected[i].prefix, len) ||
		    (path[len] != '\0' && path[len] != '/'))
			continue;
		if (!strcmp(redirected[i].prefix, NODE_DIR) && has_kernel_nodes())
			return path;
		check_run_dir(dir);
		if (is_left_to_kernel(dir, redirected[i].prefix, buf))
			return path;
		return snprintf(buf, PATH_MAX, "%s/%s%s", dir, redirected[i].dir, path + len) <
				       PATH_MAX
			       ? buf
			       : path;
	}
	return path;
}

/* Whether the path is /sys/class/infiniband/DEVICE. */
static bool is_device_dir(const char *path)
{
	static const char class[] = "/sys/class/infiniband/";
	const size_t len = strlen(class);

	return path_watched(path) && !strncmp(path, class, len) && path[len] &&
	       !strchr(path + len, '/');
}

uint32_t path_device_generation(const char *path)
{
	const int saved = errno;
	char buf[PATH_MAX], byte;
	uint32_t generation = is_device_dir(path) ? adapter_list_generation() : 0;

	/* In the run directory, the entries of the kernel's devices are links. */
	if (generation && REAL(readlink)(path_redirect(path, buf), &byte, sizeof(byte)) >= 0)
		generation = 0;
	errno = saved;
	return generation;
}
