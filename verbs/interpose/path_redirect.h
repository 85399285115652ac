/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Redirects paths of sysfs and /dev to the daemon's run directory. For path_calls.c. The device
 * nodes themselves: device_node.c.
 */
#ifndef URXE_VERBS_INTERPOSE_PATH_REDIRECT_H
#define URXE_VERBS_INTERPOSE_PATH_REDIRECT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether URXE_DIR is set, and the path begins with /sys/class/, or is /dev/infiniband or below it.
 */
bool path_watched(const char *path);

/* A quick check before path_watched: true for each path for which path_watched is true, and for
 * some others. */
static inline bool path_may_be_watched(const char *path)
{
	/*
	 * Programs pass NULL and expect EFAULT, although libc declares the path as nonnull: the
	 * assembly hides that from the compiler.
	 */
	__asm__("" : "+r"(path));
	if (!path || path[0] != '/')
		return false;
	return path[1] == 's' ? path[2] == 'y' && path[3] == 's' && path[4] == '/' && path[5] == 'c'
			      : path[1] == 'd' && path[2] == 'e' && path[3] == 'v' &&
					path[4] == '/' && path[5] == 'i';
}

/*
 * Redirects infiniband, infiniband_verbs and misc/rdma_cm below /sys/class, and /dev/infiniband;
 * not the uverbs nodes of another device. If the kernel has /dev/infiniband, redirects there only
 * rdma_cm and the device's uverbs node. While the run directory has no sys/, does not redirect
 * those of these directories and nodes that the kernel has, nor any path in them.
 * Returns `path` itself, or its counterpart in the run directory, written to buf. A result longer
 * than PATH_MAX is not redirected: no such file exists.
 */
const char *path_redirect(const char *path, char buf[PATH_MAX]);

/*
 * For stat(2), lstat(2), fstatat(2) and statx(2), the nanoseconds to add to the modification time
 * of `path`, which may be NULL: the device's generation if the path is the device's directory in
 * /sys/class/infiniband; else 0, also for a device of the kernel or a path relative to a
 * descriptor. The call for that directory counts as a listing of the devices
 * (adapter_list_generation). libibverbs takes a device whose directory has another modification
 * time for a new one.
 */
uint32_t path_device_generation(const char *path);

#endif
