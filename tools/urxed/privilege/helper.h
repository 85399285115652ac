/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helper processes: forks of the daemon that take a risk which the daemon must not take, or that
 * keep a capability which the daemon drops. A helper has one socket to the daemon, and ends when
 * the socket closes.
 */
#ifndef URXE_URXED_PRIVILEGE_HELPER_H
#define URXE_URXED_PRIVILEGE_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The helper's descriptor of the socket. Its other descriptors, 0 to 2, are /dev/null. */
#define HELPER_SOCKET 3

struct helper {
	pid_t pid;  /* 0 = none */
	int socket; /* SOCK_SEQPACKET, non-blocking; -1 = none */
};

/*
 * Forks a helper, which calls `run` and then exits. The helper keeps only the capabilities in
 * `capabilities`, bits 1 << CAP_..., and its system calls are filtered (syscall_filter.h). `name`
 * has at most 15 characters. If the daemon has threads already, `run` calls only functions that
 * signal handlers may call. Returns 0 or a negative errno value.
 */
int helper_start(struct helper *h, const char *name, uint64_t capabilities, void (*run)(void));
/*
 * As helper_start, for a helper that starts programs: it keeps all capabilities, and its system
 * calls are not filtered, because programs inherit both. Call it before the daemon has threads.
 */
int helper_start_unfiltered(struct helper *h, const char *name, void (*run)(void));
/*
 * Returns true if the helper's process has ended or was never started. Processes that the helper
 * has forked may still hold its end of the socket, so a send to the helper may succeed although no
 * process will receive the message.
 */
bool helper_ended(struct helper *h);
/* Closes the socket, after which the helper ends; does not wait for that. Does nothing if there is
 * no helper. */
void helper_stop(struct helper *h);

#endif
