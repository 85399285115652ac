/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXE_DAEMON_CONNECT_H
#define URXE_URXE_DAEMON_CONNECT_H

/*
 * Connects to the daemon of run_dir, starting a private one where none answers.
 * Returns the connection, which alone keeps a private daemon alive: it stays open
 * over exec. On error it has said why on standard error, and returns -1.
 */
int daemon_connect(const char *run_dir);

#endif
