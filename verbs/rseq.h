/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A system call, a copy, or an atomic instruction that is made only if a word of memory is still
 * what it was.
 *
 * Comparison and call are a restartable sequence (rseq(2)): a thread that is interrupted
 * between the two, be it for microseconds or because it was stopped for ever, does not make
 * the call when it goes on. So who changes the word need wait only for threads that run, and
 * for calls in progress. The same holds for each store of a copy, all of which is such a sequence.
 */
#ifndef URXE_VERBS_RSEQ_H
#define URXE_VERBS_RSEQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* No errno values. */
#define RSEQ_INTERRUPTED (-4096L) /* nothing was done, or of a copy a part */
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

/* Bytes of one copy: one that takes much longer is interrupted each time. */
#define RSEQ_COPY_MAX 16384

/*
 * Copies length bytes, at least 1 and at most RSEQ_COPY_MAX; the last 8 are stored last, and all at
 * once where there are so many. 0, RSEQ_INTERRUPTED or RSEQ_CHANGED.
 */
long rseq_copy(void *to, const void *from, uint64_t length, const uint64_t *word,
	       uint64_t expected);

/* On 8 aligned bytes, for all that have them mapped. */
struct rseq_atomic {
	uint64_t *at;
	bool compare_swap; /* else operand is added */
	uint64_t operand, compare;
	uint64_t original; /* what was there before */
};
/* 0, RSEQ_INTERRUPTED or RSEQ_CHANGED; executed once where it is 0, else not. */
long rseq_atomic(struct rseq_atomic *atomic, const uint64_t *word, uint64_t expected);

#endif
