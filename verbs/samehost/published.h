/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a process publishes to its peers, the other processes of its user on this host: the
 * part of its inbox that only it can write (VNIC_INBOX_PUBLISHED_SIZE bytes). For peer.c and
 * peer_copy.c.
 */
#ifndef URXE_VERBS_SAMEHOST_PUBLISHED_H
#define URXE_VERBS_SAMEHOST_PUBLISHED_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include <rxe/copy_transport.h>
#include <vnic/attach_protocol.h>
#include <vnic/inbox.h>

struct published {
	/* Written before vnic_inbox_publish: */
	uint64_t token;         /* random; 0: the process takes part in no copies */
	uint64_t token_at;      /* address of a copy of the token in the process's own memory */
	uint64_t remote_pieces; /* address, in the process's memory, of peers.remote_pieces */
	uint64_t pid_namespace; /* inode number of the PID namespace in which `pid` is valid */
	int32_t pid;
	uint32_t process; /* number of the process: VNIC_BLOCK of its first block of QPNs */
	/* Number of looks for frames by the engine thread in busy polls. Peers see by its change
	 * that the thread busy-polls. */
	uint32_t polls;
	/* The copy that a thread of the process makes now: COPYING_*; 0: none. */
	_Alignas(64) _Atomic uint64_t copying;
	/*
	 * Odd: no copy to or from this process counts now (peers_shut). A copy counts only if this
	 * number is even, and the same before and after the copy. Each copy reads it, so it is not
	 * in the cache line of `polls`, which often changes.
	 */
	_Alignas(64) uint32_t shuts;
	/*
	 * Tokens of the processes whose memory this process has read and written, by their numbers
	 * (VNIC_BLOCK). Only those processes may copy to and from this one, because this process
	 * can interrupt their copies.
	 */
	_Atomic uint64_t reached[VNIC_BLOCKS];
	/*
	 * state.owner is the engine thread, by a word of its robust futex list: the kernel sets
	 * FUTEX_OWNER_DIED there when the thread ends, also because the process is killed or
	 * executes another program, and before another thread can get the same number.
	 * 0: the engine thread does not run yet.
	 */
	struct urxe_copy_table table;
};

static_assert(sizeof(struct published) <= VNIC_INBOX_PUBLISHED_SIZE, "fits the inbox");
static_assert(VNIC_LEASE_QPNS == URXE_COPY_CHUNK && VNIC_LEASES_MAX <= URXE_COPY_CHUNKS,
	      "the table has a place for each QP of a process");

/* Fields of `copying`: the thread, the process to or from which it copies, and a running number. */
#define COPYING_THREAD_BITS  30 /* FUTEX_TID_MASK */
#define COPYING_PROCESS_BITS 12

static_assert(VNIC_BLOCKS <= 1u << COPYING_PROCESS_BITS, "process numbers fit");

static inline uint64_t copying_word(int32_t thread, uint32_t process, uint32_t number)
{
	return (uint32_t)thread | (uint64_t)process << COPYING_THREAD_BITS |
	       (uint64_t)number << (COPYING_THREAD_BITS + COPYING_PROCESS_BITS);
}

static inline int32_t copying_thread(uint64_t copying)
{
	return (int32_t)(copying & ((1u << COPYING_THREAD_BITS) - 1));
}

static inline uint32_t copying_process(uint64_t copying)
{
	return (uint32_t)(copying >> COPYING_THREAD_BITS) & ((1u << COPYING_PROCESS_BITS) - 1);
}

#endif
