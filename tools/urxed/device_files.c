/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/device_files.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxed/sysfs_tree.h"

int device_files_create(struct device_files *f, const char *run_dir, const struct host *host,
			gid_t group)
{
	*f = (struct device_files){.run_dir = run_dir, .retry_at = UINT64_MAX};
	return sysfs_tree_create(run_dir, host, group);
}

void device_files_update(struct device_files *f, const struct host *host, uint64_t now)
{
	int rc = rundir_is_lost(f->run_dir) ? 0 : sysfs_tree_update(f->run_dir, host);

	if (rc) {
		if (f->retry_at == UINT64_MAX)
			log_line("cannot write to %s, trying again: %s", f->run_dir, strerror(-rc));
		f->retry_at = now + NS_PER_SEC;
		return;
	}
	f->retry_at = UINT64_MAX;
}

uint64_t device_files_tick(struct device_files *f, const struct host *host, uint64_t now)
{
	if (now >= f->retry_at)
		device_files_update(f, host, now);
	return f->retry_at;
}
