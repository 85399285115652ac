/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <session/env.h>
#include <vnic/inbox.h>

#include "peer_private.h"
#include "published.h"
#include "thread_state.h"

/*
 * Number of checks whether a peer's copy has ended, before this process looks up the copying thread
 * in /proc. All checks together take about as long as a short copy.
 */
#define SPINS 1000
/*
 * If a peer's thread spends this CPU time, in seconds, while its mark of a copy (published.copying)
 * stays, the mark counts as false. A copy of URXE_COPY_MAX bytes takes less than a tenth of it.
 */
#define STALE_COPY_S 1

static __thread __attribute__((tls_model("initial-exec"))) int32_t thread;

int32_t peers_this_thread(void)
{
	if (!thread)
		thread = gettid();
	return thread;
}

/* --- The published memory of this process. */

static bool packets_only(void)
{
	const char *transport = env_get("TRANSPORT");

	return transport && !strcmp(transport, "packet");
}

/* Whether /proc shows the PID namespace of this process. Only then are the PIDs and TIDs that peers
 * publish names of files there. */
static bool proc_is_ours(void)
{
	char target[16];
	ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = 0;
	return atoi(target) == getpid();
}

static bool identify_self(struct peers *peers)
{
	struct stat namespace;

	if (getrandom(&peers->token, sizeof(peers->token), GRND_NONBLOCK) != sizeof(peers->token) ||
	    !peers->token || !proc_is_ours() || stat("/proc/self/ns/pid", &namespace))
		return false;
	peers->pid = getpid();
	peers->pid_namespace = namespace.st_ino;
	return true;
}

void peers_init(struct peers *peers, const struct peers_ops *ops, void *ctx)
{
	peers->ops = ops;
	peers->ctx = ctx;
}

struct urxe_copy_table *peers_publish(struct peers *peers, void *published, uint32_t process)
{
	struct published *p = published;

	p->process = process;
	peers->owner = &p->table.state.owner;
	if (packets_only() || !identify_self(peers))
		return NULL;
	p->token = peers->token;
	/* The generation of payload references begins at a random number, so that peers refuse old
	 * references of an earlier process with the same QPNs. */
	p->table.references = (uint32_t)peers->token;
	p->token_at = (uintptr_t)&peers->token;
	p->remote_pieces = (uintptr_t)peers->remote_pieces;
	p->pid_namespace = peers->pid_namespace;
	p->pid = peers->pid;
	peers->process = process;
	peers->published = p;
	return &p->table;
}

uint32_t peer_published_process(const void *published)
{
	return ((const struct published *)published)->process % VNIC_BLOCKS;
}

/*
 * Gives the kernel this thread's robust list, which the kernel follows when the thread ends. glibc
 * has set a list of its own for robust mutexes, of which this thread locks none.
 */
void peers_publish_thread(struct peers *peers)
{
	struct robust_list_head *head = &peers->robust_head;
	struct robust_list *entry = &peers->robust_entry;
	uint32_t *owner = peers->owner;

	if (!owner)
		return;
	entry->next = &head->list;
	head->list.next = entry;
	head->futex_offset = (long)((uintptr_t)owner - (uintptr_t)entry);
	head->list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, head, sizeof(*head)))
		return;
	__atomic_store_n(owner, (uint32_t)peers_this_thread(), __ATOMIC_RELEASE);
}

void peers_count_poll(struct peers *peers)
{
	if (peers->published)
		__atomic_store_n(&peers->published->polls, peers->published->polls + 1,
				 __ATOMIC_RELAXED);
}

/* --- Suspension of all copies. */

/* Makes all copies fail. The store is sequentially consistent: all copies fail that begin before
 * the caller, a handler of SIGBUS, replaces a lost page of the memory by a system call. */
void peers_shut(struct peers *peers)
{
	struct published *p = peers->published;

	if (p && !is_shut(p->shuts))
		__atomic_fetch_add(&p->shuts, 1, __ATOMIC_SEQ_CST);
}

void peers_reopen(struct peers *peers)
{
	struct published *p = peers->published;

	if (p && is_shut(shuts_of(p)))
		__atomic_fetch_add(&p->shuts, 1, __ATOMIC_SEQ_CST);
}

/* --- Peers. */

/*
 * Overwrites the addresses in the peer's array of remote pieces by invalid ones: a thread of the
 * peer that has not made its system call yet then copies nothing. Writes two bytes of each address,
 * 0x8080, so that no mix of old and new bytes is a valid address: bit 63 is set in no user address
 * of x86-64, bit 55 in none of arm64. False: the kernel refused to write to the peer's memory.
 */
static bool invalidate_pieces(const struct peer *peer)
{
	enum { BYTES = 2, AT = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 6 : 0 };
	uint8_t bits[URXE_COPY_EXTENTS * BYTES];
	const struct iovec local = {bits, sizeof(bits)};
	const uint64_t first = peer->published->remote_pieces + offsetof(struct iovec, iov_base);
	struct iovec *remote = peer->of->pieces_of_peer;

	memset(bits, 0x80, sizeof(bits));
	for (uint32_t i = 0; i < URXE_COPY_EXTENTS; i++)
		remote[i] = (struct iovec){
			(void *)(uintptr_t)(first + i * sizeof(struct iovec) + AT), BYTES};
	return process_vm_writev(peer->thread, &local, 1, remote, URXE_COPY_EXTENTS, 0) ==
	       sizeof(bits);
}

static bool is_own_thread(int32_t tid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	return !access(path, F_OK);
}

static bool reads_token(int32_t tid, const struct published *p, uint64_t token)
{
	uint64_t found = 0;
	const struct iovec local = {&found, sizeof(found)};
	const struct iovec remote = {(void *)(uintptr_t)p->token_at, sizeof(found)};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == sizeof(found) && found == token;
}

/* Sets peer->pid, process and start to the peer's published values, and checks them. False: they
 * are wrong, /proc does not show the process, or the kernel refuses access to its memory. Wrong
 * values could make this process overwrite its own memory, or that of a third process. */
static bool verify_identity(struct peer *peer)
{
	const struct published *p = peer->published;
	uint64_t token = __atomic_load_n(&p->token, __ATOMIC_ACQUIRE);

	peer->pid = p->pid;
	peer->process = p->process % VNIC_BLOCKS;
	if (!token || p->pid_namespace != peer->of->pid_namespace ||
	    peer->own != (token == peer->of->token) || peer->own != is_own_thread(peer->thread))
		return false;
	return process_started_at(peer->pid, &peer->start) && reads_token(peer->thread, p, token) &&
	       invalidate_pieces(peer);
}

/* Finds out whether this process has access to the peer's memory, and sets peer->access. If it has,
 * publishes the peer's token (published.reached), so that the peer may copy; not after
 * peers_begin_refusal. No effect while the peer's engine thread does not run, or if this process
 * takes part in no copies. */
static void establish_access(struct peer *peer)
{
	peer->thread = owner_of(peer);
	if (!peer->thread || !peer->of->published)
		return;
	peer->access = ACCESS_REFUSED;
	before_call(peer->of); /* system calls follow */
	if (!verify_identity(peer))
		return;
	peer->access = ACCESS_GRANTED;
	if (!atomic_load(&peer->of->refuses))
		atomic_store(&peer->of->published->reached[peer->process], peer->published->token);
}

bool peer_may_copy(struct peer *peer)
{
	if (atomic_load(&peer->of->refuses))
		return false;
	if (peer->access == ACCESS_UNKNOWN)
		establish_access(peer);
	return peer->access == ACCESS_GRANTED && owner_of(peer) == peer->thread &&
	       is_reached_by(peer);
}

static void free_peer(struct peer *peer)
{
	LIST_REMOVE(peer, link);
	vnic_outbox_close(peer->outbox);
	free(peer);
}

static bool is_own_block(const struct peers *peers, uint32_t block)
{
	const struct peers_ops *ops = peers->ops;

	return block == peers->process || (ops->has_block && ops->has_block(peers->ctx, block));
}

struct peer *peer_open(struct peers *peers, struct vnic_outbox *outbox, uint32_t block)
{
	struct peer *peer = malloc(sizeof(*peer));

	if (!peer)
		return NULL;
	*peer = (struct peer){
		.of = peers,
		.published = vnic_outbox_published(outbox),
		.outbox = outbox,
		.own = is_own_block(peers, block),
	};
	LIST_INSERT_HEAD(&peers->list, peer, link);
	establish_access(peer);
	return peer;
}

/* --- The end of copies by rights that this process has withdrawn. */

static uint64_t copying_here(const struct peer *peer)
{
	uint64_t copying = atomic_load(&peer->published->copying);

	return copying && copying_process(copying) == peer->of->process ? copying : 0;
}

static void exclude_peer(struct peer *peer)
{
	if (peer->of->ops->excluded)
		peer->of->ops->excluded(peer->of->ctx, peer->pid);
	peer->access = ACCESS_REFUSED;
	peer->excluded = true;
	atomic_store(&peer->of->published->reached[peer->process], 0);
}

/* Invalidates the addresses of the awaited copy. True: its thread still copies, or may begin to. If
 * the thread has spent STALE_COPY_S of CPU time since the first call for this copy, excludes the
 * peer from copies, and returns false. */
static bool check_copying_thread(struct peer *peer)
{
	/*
	 * Invalidates the addresses before it reads the thread's state: a thread that is stopped
	 * afterwards copies nothing later. Not if the peer's engine thread has ended: its TID may
	 * be another process's by now, to whose memory this process must not write.
	 */
	bool invalid = owner_of(peer) == peer->thread && invalidate_pieces(peer);
	uint64_t ticks;

	switch (thread_state(peer->pid, peer->start, copying_thread(peer->awaited), &ticks)) {
	case THREAD_GONE: return false;
	case THREAD_STOPPED:
	case THREAD_ELSEWHERE: return !invalid;
	default: break;
	}
	if (!peer->cpu_ticks)
		peer->cpu_ticks = ticks;
	if (!peer->cpu_ticks ||
	    ticks < peer->cpu_ticks + (uint64_t)(STALE_COPY_S * sysconf(_SC_CLK_TCK)))
		return true;
	exclude_peer(peer);
	return false;
}

/* Checks the awaited copy once. True: there is none, it has ended, or the peer was excluded. */
static bool check_awaited_copy(struct peer *peer)
{
	if (peer->awaited && copying_here(peer) == peer->awaited && check_copying_thread(peer))
		return false;
	peer->awaited = 0;
	return true;
}

/* Checks up to SPINS times whether the awaited copy has ended, and then once the state of its
 * thread. A longer copy stays awaited; peers_settled checks again. */
static void await_short_copy(struct peer *peer)
{
	for (int i = 0; i < SPINS && copying_here(peer) == peer->awaited; i++)
		;
	if (copying_here(peer) == peer->awaited)
		before_call(peer->of); /* system calls follow */
	check_awaited_copy(peer);
}

static void await_copy_of(struct peer *peer)
{
	/* A peer that is this process makes no copy now: the copying thread would hold the lock
	 * that the caller holds. An excluded peer may copy no more. */
	if (peer->own || peer->excluded)
		return;
	peer->awaited = copying_here(peer);
	peer->cpu_ticks = 0;
	if (peer->awaited)
		await_short_copy(peer);
	peer->of->unsettled |= peer->awaited != 0;
}

/*
 * Waits briefly for the end of each copy of a peer that may use the withdrawn rights, and notes
 * longer copies for peers_settled. The caller has incremented the epoch by a sequentially
 * consistent store. So a peer that marks its copy afterwards finds the new epoch, and copies
 * nothing (copy_pieces of peer_copy.c).
 */
void peers_rights_withdrawn(void *ctx)
{
	struct peers *peers = ctx;
	struct peer *peer;

	LIST_FOREACH(peer, &peers->list, link)
	await_copy_of(peer);
}

bool peers_settled(struct peers *peers)
{
	struct peer *peer, *next;
	bool all = true;

	if (!peers->unsettled)
		return true;
	for (peer = LIST_FIRST(&peers->list); peer; peer = next) {
		next = LIST_NEXT(peer, link);
		if (!check_awaited_copy(peer))
			all = false;
		else if (peer->closed)
			free_peer(peer);
	}
	peers->unsettled = !all;
	return all;
}

/* Withdraws from all peers the right to copy by any key, and makes all payload references invalid.
 */
static void refuse_copies(struct peers *peers)
{
	struct peer *peer;

	LIST_FOREACH(peer, &peers->list, link)
	atomic_store(&peers->published->reached[peer->process], 0);
	/* Invalidates references: the engine repeats their messages in packets with payload. */
	__atomic_fetch_add(&peers->published->table.references, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&peers->published->table.state.epoch, 1, __ATOMIC_SEQ_CST);
	peers_rights_withdrawn(peers);
}

void peers_begin_refusal(struct peers *peers)
{
	atomic_store(&peers->refuses, true);
}

void peers_refuse(struct peers *peers)
{
	if (peers->published)
		refuse_copies(peers);
}

bool peers_refusing(const struct peers *peers)
{
	return atomic_load_explicit(&peers->refuses, memory_order_relaxed);
}

/* A peer whose copy is still awaited stays in the list until that copy has ended (peers_settled).
 */
void peer_close(struct peer *peer)
{
	if (peer->of->published) {
		atomic_store(&peer->of->published->reached[peer->process], 0);
		__atomic_fetch_add(&peer->of->published->table.state.epoch, 1, __ATOMIC_SEQ_CST);
		await_copy_of(peer);
	}
	peer->closed = true;
	if (!peer->awaited)
		free_peer(peer);
}

/* Frees the peers that peer_close() has left for later. */
static void free_closed_peers(struct peers *peers)
{
	struct peer *peer, *next;

	for (peer = LIST_FIRST(&peers->list); peer; peer = next) {
		next = LIST_NEXT(peer, link);
		if (peer->closed)
			free_peer(peer);
	}
	peers->unsettled = false;
}

void peers_done(struct peers *peers)
{
	free_closed_peers(peers);
	peers->published = NULL;
	peers->owner = NULL;
}

void peers_fork_child(struct peers *peers)
{
	thread = 0;
	/* The child must not use the published memory, which is the parent's. */
	peers->published = NULL;
	peers->owner = NULL;
	free_closed_peers(peers);
}

bool peer_has_ended(const struct peer *peer)
{
	return owner_of(peer) & FUTEX_OWNER_DIED;
}
