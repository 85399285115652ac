/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the daemon of a run directory, or starts a private one, which ends after its last program.
 * For cmd_run.c, cmd_vm.c and cmd_doctor.c.
 */
#ifndef URXE_URXE_DAEMON_CONNECT_H
#define URXE_URXE_DAEMON_CONNECT_H

#include "common/rundir.h"

/* Options of a private daemon, as on its command line; NULL: not given. */
struct daemon_start_options {
	const char *hca;
	const char *device;
};

/*
 * Connects to the daemon of run_dir, and starts a private one with `options` if none listens there.
 * Returns the connection, which stays open over exec and keeps a private daemon alive; -1 after an
 * error, which is logged.
 */
int daemon_connect(const char *run_dir, const struct daemon_start_options *options);
/*
 * Writes the run directory for `given`, the value of --run-dir or NULL. Without --run-dir and
 * URXE_DIR, it is that of root's daemon if the user has no daemon and root's admits the user.
 * Returns 0, or a negative errno value and a sentence in `error`.
 */
int daemon_choose_run_dir(const char *given, char run_dir[RUNDIR_MAX], char error[RUNDIR_ERROR]);

#endif
