/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer. peer.c makes peers, verifies their processes, and withdraws rights from them; peer_copy.c
 * copies.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_PRIVATE_H
#define URXE_VERBS_SAMEHOST_PEER_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "peer.h"
#include "peer_poll.h"
#include "published.h"

enum access { ACCESS_UNKNOWN, ACCESS_GRANTED, ACCESS_REFUSED };

struct peer {
	struct peers *of;
	const struct published *published;
	struct vnic_outbox *outbox;
	uint32_t process; /* the number that it has published (VNIC_BLOCK); 0: not read yet */
	bool own;         /* the peer is this process */
	bool closed;      /* peer_close was called: freed when its awaited copy has ended */
	bool excluded;    /* it may copy no more: its thread has marked a copy, and made none */
	/* Whether the kernel permits access to the memory of the process. */
	enum access access;
	/* The identity of the peer's process, as establish_access has read it: */
	int32_t pid;
	int32_t thread; /* TID of its engine thread */
	uint64_t start; /* its start time (process_started_at) */
	struct peer_poll poll;
	uint64_t awaited;   /* its copy (published.copying) by withdrawn rights; 0: none */
	uint64_t cpu_ticks; /* first known CPU time of the thread of that copy; 0: not known yet */
	LIST_ENTRY(peer) link;
};

/* The TID of the calling thread. */
int32_t peers_this_thread(void);
/* Whether this process may copy to and from the memory of the peer. */
bool peer_may_copy(struct peer *peer);
/* urxe_copy_ops.withdrawn: notes the copies of peers in progress, for peers_settled. ctx: a struct
 * peers. */
void peers_rights_withdrawn(void *ctx);

/* Call it before system calls that may take long (peers_ops.before_call). */
static inline void before_call(const struct peers *peers)
{
	if (peers->ops->before_call)
		peers->ops->before_call(peers->ctx);
}

static inline uint32_t shuts_of(const struct published *published)
{
	return __atomic_load_n(&published->shuts, __ATOMIC_ACQUIRE);
}

static inline bool is_shut(uint32_t shuts)
{
	return shuts & 1;
}

/* TID of the peer's engine thread, with FUTEX_OWNER_DIED once it has ended; 0: it does not run yet.
 */
static inline int32_t owner_of(const struct peer *peer)
{
	return (int32_t)__atomic_load_n(&peer->published->table.state.owner, __ATOMIC_ACQUIRE);
}

/* Whether the peer has shown that it can write to this process's memory, and so can interrupt its
 * copies (published.reached). Only then may this process copy to and from the peer's memory. */
static inline bool is_reached_by(const struct peer *peer)
{
	return atomic_load(&peer->published->reached[peer->of->process]) == peer->of->token;
}

#endif
