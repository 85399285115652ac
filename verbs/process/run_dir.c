/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/run_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <session/env.h>
#include <vnic/attach_protocol.h>

#include "process/libc_real.h"
#include "process/log.h"

enum { UNKNOWN, INERT, ACTIVE };
static atomic_int state;
static char run_dir[PATH_MAX];
static atomic_bool has_other_name;

/* Whether the device's node has the other name, VNIC_UVERBS_OTHER. The run directory has at most
 * one of the two nodes. */
static bool find_other_name(void)
{
	char path[PATH_MAX];
	int saved = errno;
	bool found = snprintf(path, sizeof(path), "%s/dev/infiniband/" VNIC_UVERBS_OTHER, run_dir) <
			     PATH_MAX &&
		     !REAL(access)(path, F_OK);

	errno = saved;
	return found;
}

/* Copies the value of URXE_DIR, because the program may change its environment. Returns ACTIVE;
 * INERT if URXE_DIR names no run directory. Two threads may do so at once: they copy the same
 * value. */
static int read_run_dir(void)
{
	const char *dir = env_get("DIR");
	int found = INERT;

	if (dir && (dir[0] != '/' || strlen(dir) >= sizeof(run_dir))) {
		log_write("URXE_DIR is not the absolute path of a run directory: '%s'", dir);
	} else if (dir) {
		memcpy(run_dir, dir, strlen(dir) + 1);
		found = ACTIVE;
	}
	atomic_store_explicit(&state, found, memory_order_release);
	return found;
}

const char *run_dir_path(void)
{
	int s = atomic_load_explicit(&state, memory_order_acquire);

	if (s == UNKNOWN)
		s = read_run_dir();
	return s == ACTIVE ? run_dir : NULL;
}

const char *run_dir_uverbs_name(void)
{
	if (!has_other_name && run_dir_path() && find_other_name())
		has_other_name = true;
	return has_other_name ? VNIC_UVERBS_OTHER : VNIC_UVERBS_NAME;
}
