/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leaving the terminal: the daemon goes on in a child, in a session of its own.
 * The parent waits until the child is ready, and ends as it does if it is not.
 */
#ifndef URXE_URXED_DETACH_H
#define URXE_URXED_DETACH_H

/*
 * Returns in the child alone, with the descriptor for detach_ready; standard
 * error still is the starter's. -errno: there is no child.
 */
int detach_begin(void);
/* Standard output and error go to the log from now on; the parent exits with status 0. */
int detach_ready(int ready_fd, const char *log_path);

#endif
