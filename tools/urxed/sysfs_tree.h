/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes the sys/ and dev/ trees of the run directory, which liburxe.so shows to programs in place
 * of /sys and /dev: the files of an RDMA device (Documentation/ABI/stable/sysfs-class-infiniband).
 * device_files.c and daemon_start.c call this.
 */
#ifndef URXE_URXED_SYSFS_TREE_H
#define URXE_URXED_SYSFS_TREE_H

#include <sys/types.h>

#include "urxed/hostnet/host.h"

/*
 * Writes sys/ and dev/ in the run directory. Files of an earlier daemon stay if they have the right
 * contents, so programs that continue with this daemon find them at any time; the earlier daemon's
 * device is removed if its name differs. The same node GUID and device name give the device's
 * directory the same modification time. All users may read sys/; dev/, where they could write, is
 * for members of `group` only (0: no group). Returns 0 or a negative errno value; on error no tree
 * is left.
 */
int sysfs_tree_create(const char *run_dir, const struct host *host, gid_t group);
/*
 * Replaces each file that does not fit the host any more, atomically. Returns 0 or a negative errno
 * value; on error the tree stays, and some files may be old.
 */
int sysfs_tree_update(const char *run_dir, const struct host *host);
void sysfs_tree_remove(const char *run_dir);

#endif
