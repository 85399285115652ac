/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The helper process of fd_guard.h, and its messages. */
#ifndef URXE_URXED_PRIVILEGE_FD_GUARD_PROCESS_H
#define URXE_URXED_PRIVILEGE_FD_GUARD_PROCESS_H

#include <stdint.h>

enum fd_guard_job {
	FD_GUARD_CLOSE = 1, /* close the socket, but only after the next FD_GUARD_CLOSED */
	FD_GUARD_CHECK,     /* receive an inbox's descriptors from the socket, and check them */
	/* Without a socket: the daemon has closed its own copies of the sockets of all earlier
	 * FD_GUARD_CLOSE, so the helper's workers have the last copies. */
	FD_GUARD_CLOSED,
};

/* A message from the daemon to the helper, with one socket unless `job` says otherwise. */
struct fd_guard_request {
	uint32_t job;
	uint32_t user; /* uid of the program at the other end of the socket; 0 without a socket */
	uint64_t token;
};

/* A message from the helper to the daemon, with the descriptors of a checked inbox. */
struct fd_guard_result {
	uint64_t token;
};

/* Runs until the daemon closes HELPER_SOCKET (helper.h). */
void fd_guard_process(void);

#endif
