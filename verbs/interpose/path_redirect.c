/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/path_redirect.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <session/env.h>
#include <vnic/attach.h>

#include "interpose/libc_real.h"
#include "report/log.h"

#define UVERBS_DIR "dev/infiniband/"

/* Prefixes, and their directories below the run directory. */
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
};

enum { UNKNOWN, INERT, ACTIVE };
static atomic_int state;
static char run_dir[PATH_MAX];
static const char *uverbs_name = VNIC_UVERBS_NAME;

/*
 * libibverbs only says that the host has no device if the daemon has ended, or if URXE_DIR names no
 * run directory. The first look at the directory tells the user the reason.
 */
static void check_run_dir(void)
{
	static atomic_bool checked;
	char path[PATH_MAX];
	int saved = errno;

	if (atomic_exchange(&checked, true))
		return;
	if (snprintf(path, sizeof(path), "%s/" VNIC_SYSFS_NAME, run_dir) < PATH_MAX &&
	    REAL(access)(path, F_OK))
		log_write("%s, named by URXE_DIR, is not the run directory of a running urxed: "
			  "start programs by 'urxe run'",
			  run_dir);
	errno = saved;
}

/* The run directory has the node of its own device only. */
static void find_uverbs_name(void)
{
	char path[PATH_MAX];
	int saved = errno;

	if (snprintf(path, sizeof(path), "%s/" UVERBS_DIR VNIC_UVERBS_OTHER, run_dir) < PATH_MAX &&
	    !REAL(access)(path, F_OK))
		uverbs_name = VNIC_UVERBS_OTHER;
	errno = saved;
}

/* Copied, because a program may change its environment. Two threads copy the same value. */
static int read_run_dir(void)
{
	const char *dir = env_get("DIR");
	int found = INERT;

	if (dir && (dir[0] != '/' || strlen(dir) >= sizeof(run_dir))) {
		log_write("URXE_DIR is not the absolute path of a run directory: '%s'", dir);
	} else if (dir) {
		memcpy(run_dir, dir, strlen(dir) + 1);
		find_uverbs_name();
		found = ACTIVE;
	}
	atomic_store_explicit(&state, found, memory_order_release);
	return found;
}

const char *path_run_dir(void)
{
	int s = atomic_load_explicit(&state, memory_order_acquire);

	if (s == UNKNOWN)
		s = read_run_dir();
	return s == ACTIVE ? run_dir : NULL;
}

const char *path_uverbs_name(void)
{
	return path_run_dir() ? uverbs_name : VNIC_UVERBS_NAME;
}

/* A node of the device of another library in this process. */
static bool is_foreign_node(const char *path)
{
	const char *name = path + strlen("/" UVERBS_DIR);

	return !strncmp(path, "/" UVERBS_DIR "uverbs", strlen("/" UVERBS_DIR "uverbs")) &&
	       strcmp(name, uverbs_name);
}

bool path_watched(const char *path)
{
	return path_may_be_watched(path) && path_run_dir() &&
	       (!strncmp(path, "/sys/class/", 11) || !strncmp(path, "/dev/infiniband/", 16));
}

const char *path_redirect(const char *path, char buf[PATH_MAX])
{
	const char *dir = path_run_dir();

	if (!path_watched(path) || is_foreign_node(path))
		return path;
	for (unsigned int i = 0; i < sizeof(redirected) / sizeof(redirected[0]); i++) {
		size_t len = strlen(redirected[i].prefix);

		if (strncmp(path, redirected[i].prefix, len) ||
		    (path[len] != '\0' && path[len] != '/'))
			continue;
		if (snprintf(buf, PATH_MAX, "%s/%s%s", dir, redirected[i].dir, path + len) >=
		    PATH_MAX)
			return path;
		check_run_dir();
		return buf;
	}
	return path;
}
