/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Starts the daemon in the background: it runs in a child with its own session. The parent exits
 * when the child is ready, or with the child's exit status if the child fails. main.c calls this.
 */
#ifndef URXE_URXED_DETACH_H
#define URXE_URXED_DETACH_H

/* On success returns only in the child: the descriptor for detach_ready. Standard error is then
 * still that of the parent. On error returns a negative errno value, in the parent. */
int detach_begin(void);
/*
 * Redirects standard output and error to the log and standard input to /dev/null, changes to the
 * directory /, and lets the parent exit with status 0. Returns 0 or a negative errno value.
 */
int detach_ready(int ready_fd, const char *log_path);

#endif
