/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket from an open rdma_cm file to the daemon. After the daemon's end, a thread looks for
 * another daemon, and claims the file's IDs there by the file's token.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_DAEMON_SOCKET_H
#define URXE_VERBS_RDMACM_DAEMON_SOCKET_H

#include "rdmacm/rdmacm_file.h"

/*
 * Connects a new file, whose event_set is open, to the daemon. 0, or a negative errno value:
 * -ETIMEDOUT if the daemon does not answer until `deadline` (clock_monotonic(); UINT64_MAX: no
 * limit).
 */
int rdmacm_daemon_connect(struct rdmacm_file *file, uint64_t deadline);
/* Ends the connection and closes the event socket, for close(2). Also for a file without
 * connection. */
void rdmacm_daemon_disconnect(struct rdmacm_file *file);
/* In a forked child: closes the child's copies of the parent's sockets. The file connects to no
 * daemon again. */
void rdmacm_daemon_fork_child(struct rdmacm_file *file);

/*
 * Sends a command and receives the daemon's reply. If the daemon has ended, waits for the next one,
 * with file->lock released, and asks it. 0; -EIO: no next daemon came, or it refused the file;
 * -EBADF: another thread has closed the file, or this is a child that a signal handler has forked.
 */
int rdmacm_daemon_ask(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response);

/*
 * For checkpoint/, which must not wait without limit. Sends a command and receives the daemon's
 * reply. 0; -EAGAIN: the daemon has ended; -ETIMEDOUT: no reply until `deadline`
 * (clock_monotonic()). After -ETIMEDOUT the daemon may still run the command, before later ones,
 * and the file drops the late reply. If the daemon still owes an earlier reply at the deadline, the
 * file does not send the command. It sends a CM_ATTACH_THAW nevertheless, unless the daemon owes
 * two replies.
 */
int rdmacm_daemon_try(struct rdmacm_file *file, const struct rdmacm_request *request,
		      struct rdmacm_response *response, uint64_t deadline);

/* --- For the reconnecting thread */

/* Receives and drops replies that came late. True: the daemon has closed the connection. Never
 * blocks. */
bool rdmacm_daemon_notice_end(struct rdmacm_file *file);
/* Whether the file is open, has lost its daemon, and may still get another one. */
bool rdmacm_daemon_is_reconnecting(const struct rdmacm_file *file);
/* The daemon has ended: closes the socket, begins to look for another daemon, and tries once. */
void rdmacm_daemon_lost(struct rdmacm_file *file);
/* If rdmacm_daemon_is_reconnecting(), tries once to connect. Gives up, for good, when
 * URXE_RECONNECT_S have passed since the loss, or if the daemon refuses the file. */
void rdmacm_daemon_retry(struct rdmacm_file *file);

#endif
