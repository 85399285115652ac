/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/daemon_return.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "process/libc_real.h"
#include "process/run_dir.h"
#include "process/settings.h"

#define SECOND UINT64_C(1000000000)

/* The time at which the run directory had changed when this process waited in vain. */
static _Atomic uint64_t gave_up_at;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static bool has_file(const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", run_dir_path(), name) < PATH_MAX &&
	       !REAL(faccessat)(AT_FDCWD, path, F_OK, AT_EACCESS);
}

/* When a file of the run directory was last added or removed, ns of CLOCK_REALTIME; 0: unknown. */
static uint64_t changed_at(void)
{
	struct statx st;

	if (REAL(statx)(AT_FDCWD, run_dir_path(), 0, STATX_MTIME, &st) || st.stx_mtime.tv_sec < 0)
		return 0;
	return (uint64_t)st.stx_mtime.tv_sec * SECOND + st.stx_mtime.tv_nsec;
}

/* For how many ns a daemon may still return to a directory that changed at that time. */
static uint64_t patience(uint64_t changed)
{
	const uint64_t limit = settings_reconnect_ns(), now = read_clock(CLOCK_REALTIME);
	const uint64_t uptime = read_clock(CLOCK_BOOTTIME);

	if (!changed || changed > now || changed == gave_up_at || !has_file(VNIC_LOCK_NAME))
		return 0;
	if (has_file(VNIC_SOCKET_NAME))
		return now - changed < uptime ? limit : 0;
	return now - changed < limit ? limit - (now - changed) : 0;
}

static bool wait_once(uint64_t *until)
{
	const struct timespec pause = {.tv_nsec = RECONNECT_INTERVAL_NS};
	const uint64_t now = read_clock(CLOCK_MONOTONIC), changed = changed_at();

	if (!*until)
		*until = now + patience(changed);
	if (now >= *until) {
		gave_up_at = changed;
		return false;
	}
	nanosleep(&pause, NULL);
	return true;
}

bool daemon_return_wait(uint64_t *until)
{
	const int saved = errno;
	const bool again = run_dir_path() && wait_once(until);

	errno = saved;
	return again;
}
