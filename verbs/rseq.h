/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A system call that is made only if a word of memory is still what it was.
 *
 * Comparison and call are a restartable sequence (rseq(2)): a thread that is interrupted
 * between the two, be it for microseconds or because it was stopped for ever, does not make
 * the call when it goes on. So who changes the word need wait only for threads that run, and
 * for calls in progress.
 */
#ifndef URXE_VERBS_RSEQ_H
#define URXE_VERBS_RSEQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* No errno values. */
#define RSEQ_INTERRUPTED (-4096L) /* nothing was done */
#define RSEQ_CHANGED     (-4097L) /* the word is another */

/* process_vm_readv or process_vm_writev. */
struct rseq_call {
	long number;
	pid_t pid;
	const struct iovec *local, *remote;
	unsigned long n_local, n_remote;
};

/* Whether this machine's kernel and C library do that. */
bool rseq_usable(void);
/* What the system call gives: bytes, or a negative errno value. */
long rseq_call(const struct rseq_call *call, const uint64_t *word, uint64_t expected);

#endif
