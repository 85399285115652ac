/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket from an open rdma_cm file to the daemon. After the daemon's end, the file looks for
 * another daemon and claims its IDs there by its token.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_DAEMON_SOCKET_H
#define URXE_VERBS_RDMACM_DAEMON_SOCKET_H

#include "rdmacm/rdmacm_file.h"

/*
 * Connects a new file; file->event_set is open. 0, or a negative errno value: -ETIMEDOUT if the
 * daemon does not answer until `deadline` (clock_monotonic(); UINT64_MAX: no limit).
 */
int rdmacm_daemon_connect(struct rdmacm_file *file, uint64_t deadline);
/* For close(2); also for a file that is not connected. */
void rdmacm_daemon_disconnect(struct rdmacm_file *file);

/*
 * Sends a command and receives the daemon's reply; waits for another daemon where needed, with the
 * lock free. 0; -EIO: no daemon any more; -EBADF: another thread has closed the file.
 */
int rdmacm_daemon_ask(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response);

/*
 * The same, but -EAGAIN instead of a wait for another daemon, and -ETIMEDOUT without a reply until
 * `deadline` (clock_monotonic()). After -ETIMEDOUT the daemon may still run the command, before
 * later ones, and the file drops the late reply. If the daemon still owes an earlier reply at the
 * deadline, the file does not send the command, unless the command is CM_ATTACH_THAW. The file
 * leaves a thaw out if the last command that waits at the daemon is a thaw already.
 */
int rdmacm_daemon_try(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response, uint64_t deadline);

/* --- For the reconnecting thread */

/* Whether the daemon closed the connection. Drops late replies. */
bool rdmacm_daemon_hung_up(struct rdmacm_file *file);
/* Whether the file looks for another daemon. */
bool rdmacm_daemon_sought(const struct rdmacm_file *file);
/* Closes the socket and starts to look for another daemon. */
void rdmacm_daemon_lost(struct rdmacm_file *file);
/* Tries once to connect; gives up after URXE_RECONNECT_S, or if the daemon refuses. */
void rdmacm_daemon_retry(struct rdmacm_file *file);

#endif
