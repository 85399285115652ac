/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the files of the device in the run directory (sysfs_tree.h) in agreement with struct host.
 * An update that fails, for instance because the file system is full, is tried again each second.
 * Only the daemon's thread calls these functions.
 */
#ifndef URXE_URXED_DEVICE_FILES_H
#define URXE_URXED_DEVICE_FILES_H

#include <stdint.h>
#include <sys/types.h>

#include "urxed/hostnet/host.h"

struct device_files {
	const char *run_dir;
	uint64_t retry_at; /* ns; UINT64_MAX = the files are up to date */
};

/* Writes all files; result as of sysfs_tree_create(). run_dir stays valid for the life of *f. */
int device_files_create(struct device_files *f, const char *run_dir, const struct host *host,
			gid_t group);
/* Writes what has changed since the last update that succeeded. Does nothing if another daemon has
 * locked the run directory meanwhile. */
void device_files_update(struct device_files *f, const struct host *host, uint64_t now);
/* Repeats a failed update when the repetition is due. Returns the time of the next call in ns;
 * UINT64_MAX: none is needed before the next change of *host. */
uint64_t device_files_tick(struct device_files *f, const struct host *host, uint64_t now);

#endif
