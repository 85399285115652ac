/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/path_redirect.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach.h>

static const struct {
	const char *prefix;
	const char *dir; /* below the run directory */
} redirected[] = {
	{"/sys/class/infiniband_verbs", VNIC_SYSFS_NAME "/class/infiniband_verbs"},
	{"/sys/class/infiniband", VNIC_SYSFS_NAME "/class/infiniband"},
	{"/sys/class/misc/rdma_cm", VNIC_SYSFS_NAME "/class/misc/rdma_cm"},
	{"/dev/infiniband/" VNIC_UVERBS_NAME, "dev/infiniband/" VNIC_UVERBS_NAME},
	{"/dev/infiniband/rdma_cm", "dev/infiniband/rdma_cm"},
};

enum { UNKNOWN, INERT, ACTIVE };
static atomic_int state;
static char run_dir[PATH_MAX];

/* Copied, because a program may change its environment. Two threads copy the same value. */
static int read_run_dir(void)
{
	const char *dir = getenv("URXE_DIR");
	int found = INERT;

	if (dir && dir[0] == '/' && strlen(dir) < sizeof(run_dir)) {
		memcpy(run_dir, dir, strlen(dir) + 1);
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

bool path_watched(const char *path)
{
	return path_may_be_watched(path) && path_run_dir() &&
	       (!strncmp(path, "/sys/class/", 11) || !strncmp(path, "/dev/infiniband/", 16));
}

const char *path_redirect(const char *path, char buf[PATH_MAX])
{
	const char *dir = path_run_dir();

	if (!path_watched(path))
		return path;
	for (unsigned int i = 0; i < sizeof(redirected) / sizeof(redirected[0]); i++) {
		size_t len = strlen(redirected[i].prefix);

		if (strncmp(path, redirected[i].prefix, len) ||
		    (path[len] != '\0' && path[len] != '/'))
			continue;
		if (snprintf(buf, PATH_MAX, "%s/%s%s", dir, redirected[i].dir, path + len) >=
		    PATH_MAX)
			return path;
		return buf;
	}
	return path;
}
