/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The invariants, one a file. Each ends in world_fail where it does not hold. */
#ifndef URXE_SIM_CHECK_H
#define URXE_SIM_CHECK_H

#include <rxe/types.h>

struct simhost;
struct stream;
struct world;

/* A completed atomic on a shared word. */
struct atomic_op {
	uint32_t host;     /* whose word */
	uint32_t from;     /* QPN of the requester */
	uint64_t original; /* what it returned */
	uint64_t add;      /* 0: a compare-and-swap that failed */
	uint64_t posted, completed;
};

/* Every request completes exactly once, in order, with success and the right result. */
void check_completion(struct simhost *host, const struct urxe_wc *wc);
/* Each message arrives exactly once, in order and whole (UC, UD: at most once, or not at all). */
void check_delivery(struct simhost *host, const struct urxe_wc *wc);
/* The atomic on a shared word is complete; check_atomics judges all of them together. */
void check_atomics_note(struct stream *stream, uint32_t index, uint64_t original);
/* At the end: what atomics on shared words returned is what some order of them returns, and that
 * order agrees with the times at which they were posted and completed. */
void check_atomics(struct world *world);
/* At the end: memory is what the requests in their order make of it. */
void check_memory(struct world *world);
/* At the end: what hosts say that they sent and received is what the network carried. */
void check_counters(struct world *world);
/* At the end: nothing is left over, and an error flushes exactly what was outstanding. */
void check_quiet(struct world *world);

#endif
