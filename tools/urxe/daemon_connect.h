/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXE_DAEMON_CONNECT_H
#define URXE_URXE_DAEMON_CONNECT_H

/*
 * Connects to the daemon of run_dir, and starts a private one if none answers. Returns the
 * connection, which stays open over exec and keeps a private daemon alive; -1 after an error, which
 * is logged. cmd_run.c calls this.
 */
int daemon_connect(const char *run_dir);

#endif
