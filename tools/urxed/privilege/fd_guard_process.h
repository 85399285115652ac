/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The helper process of fd_guard.h, and its messages. */
#ifndef URXE_URXED_PRIVILEGE_FD_GUARD_PROCESS_H
#define URXE_URXED_PRIVILEGE_FD_GUARD_PROCESS_H

#include <stdint.h>

enum fd_guard_job {
	FD_GUARD_CLOSE = 1, /* after the next FD_GUARD_CLOSED: close the socket */
	FD_GUARD_CHECK,     /* receive an inbox's descriptors from the socket, and check them */
	/* Without a socket: the daemon has closed its copies of the sockets of all earlier
	 * FD_GUARD_CLOSE, so its copies were not the last ones. */
	FD_GUARD_CLOSED,
};

/* From the daemon, with one socket unless `job` says otherwise. */
struct fd_guard_request {
	uint32_t job;
	uint32_t user; /* uid of the program at the other end of the socket; 0 without a socket */
	uint64_t token;
};

/* To the daemon, with the descriptors of an inbox. */
struct fd_guard_result {
	uint64_t token;
};

/* Runs until the daemon closes HELPER_SOCKET (helper.h). */
void fd_guard_process(void);

#endif
