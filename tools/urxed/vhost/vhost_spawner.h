/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The helper process that starts, kills and reaps the processes of vhost: uplinks, because the
 * daemon itself may execute no program (privilege/syscall_filter.h). vhost_process.c calls this.
 * Functions that return int return 0 or a negative errno value; a call waits at most 1 s for the
 * helper.
 */
#ifndef URXE_URXED_VHOST_VHOST_SPAWNER_H
#define URXE_URXED_VHOST_VHOST_SPAWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts the helper if one of the uplinks is a vhost: uplink. Call it before the daemon drops its
 * privileges. */
int vhost_spawner_start(const char *const *uplinks, uint32_t n);
/*
 * Ends the helper. The kernel then kills the vhost processes that still run and have passed
 * vhost_sandbox_enter (PR_SET_PDEATHSIG).
 */
void vhost_spawner_stop(void);
/* Returns true if the helper has ended or was never started. Logs the end once. The daemon starts
 * no second helper, because that helper would inherit the daemon's system call filter. */
bool vhost_spawner_ended(void);

/* Descriptors that the new process gets copies of (vhost_main.h); the caller keeps its own. */
struct vhost_spawner_fds {
	int kick, log, memory, wake;
};

/*
 * Starts a process for an uplink; `text` is its specification, with an absolute path. Sets *pid,
 * and *pid_fd to a pidfd that the caller then owns.
 */
int vhost_spawner_run(const char *text, const struct vhost_spawner_fds *fds, pid_t *pid,
		      int *pid_fd);
/* Makes the helper send SIGKILL to a process that the helper has not reaped. */
void vhost_spawner_kill(pid_t pid);
#define VHOST_SPAWNER_UNKNOWN (-1)
/*
 * Reaps a process that has ended. Returns true with *status as from waitpid(2), or with
 * VHOST_SPAWNER_UNKNOWN if the helper has ended. Returns false if the process has not ended, or the
 * helper does not answer in time.
 */
bool vhost_spawner_reap(pid_t pid, int *status);

#endif
