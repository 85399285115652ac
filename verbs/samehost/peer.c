/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "peer.h"

#include <errno.h>
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

#include <rxe/rxe.h>
#include <session/env.h>

#include <vnic/inbox.h>

#include "peer_poll.h"
#include "published.h"
#include "thread_state.h"

/*
 * Spins until a peer's copy ends, before its thread is looked up in /proc: about as long as a short
 * copy.
 */
#define SPINS 1000
/*
 * CPU seconds of a thread after which its mark counts as wrong: a copy of URXE_COPY_MAX bytes
 * takes less than a tenth.
 */
#define STALE_COPY_S 1
/*
 * Whether other processors see stores in the order in which this one makes them. If not, the kernel
 * copies the pieces of one call in no order that a program could rely on.
 */
#if defined(__x86_64__)
#define STORES_STAY_IN_ORDER true
#else
#define STORES_STAY_IN_ORDER false
#endif

_Static_assert(URXE_REFERENCE_PIECES <= URXE_COPY_EXTENTS, "see copy_payload");

enum access { ACCESS_UNKNOWN, ACCESS_GRANTED, ACCESS_REFUSED };

struct peer {
	struct peers *of;
	const struct published *published;
	struct vnic_outbox *outbox;
	uint32_t process; /* its number; 0: not verified yet */
	bool own;         /* the peer is this process */
	bool closed;      /* freed when its copy has ended */
	bool excluded;    /* from copies: its thread marked a copy, and made none */
	/* Whether the kernel permits access to the memory of the process. */
	enum access access;
	/* The process that find_access has found: */
	int32_t pid;
	int32_t thread; /* its engine thread */
	uint64_t start; /* of the process */
	struct peer_poll poll;
	uint64_t awaited;   /* its copy in progress, which may use withdrawn rights; 0: none */
	uint64_t cpu_ticks; /* CPU time of the copying thread when it was first known; 0: unknown */
	LIST_ENTRY(peer) link;
};

static __thread __attribute__((tls_model("initial-exec"))) int32_t thread;

static int32_t this_thread(void)
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

/* Whether /proc shows this PID namespace. */
static bool proc_is_ours(void)
{
	char target[16];
	ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = 0;
	return atoi(target) == getpid();
}

/* System calls follow, which take long. */
static void before_call(const struct peers *peers)
{
	if (peers->ops->before_call)
		peers->ops->before_call(peers->ctx);
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
 * The kernel follows a thread's robust list when the thread ends. glibc has set its own list for
 * robust mutexes, of which this thread locks none.
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
	__atomic_store_n(owner, (uint32_t)this_thread(), __ATOMIC_RELEASE);
}

void peers_count_poll(struct peers *peers)
{
	if (peers->published)
		__atomic_store_n(&peers->published->polls, peers->published->polls + 1,
				 __ATOMIC_RELAXED);
}

/* --- Times without copies. */

static uint32_t shuts_of(const struct published *published)
{
	return __atomic_load_n(&published->shuts, __ATOMIC_ACQUIRE);
}

static bool is_shut(uint32_t shuts)
{
	return shuts & 1;
}

/* In order with the system call by which a handler replaces a page of the memory. */
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

static int32_t owner_of(const struct peer *peer)
{
	return (int32_t)__atomic_load_n(&peer->published->table.state.owner, __ATOMIC_ACQUIRE);
}

/*
 * Makes the pieces of the peer's copy in progress invalid addresses: a thread that has not made its
 * system call yet then copies nothing. Two bytes suffice, and the kernel cannot read another valid
 * address meanwhile: bit 63 is set in no user address of x86-64, bit 55 in none of arm64.
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

/* Whether the thread is of this process. */
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

/* Published values may be wrong: no other process may make this one write to its own memory. */
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

static void find_access(struct peer *peer)
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

/* Whether the peer can interrupt copies of this process. */
static bool is_reached_by(const struct peer *peer)
{
	return atomic_load(&peer->published->reached[peer->of->process]) == peer->of->token;
}

/* Whether this process may copy to and from the memory of the peer. */
static bool may_copy(struct peer *peer)
{
	if (atomic_load(&peer->of->refuses))
		return false;
	if (peer->access == ACCESS_UNKNOWN)
		find_access(peer);
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
	find_access(peer);
	return peer;
}

/* --- Copies of peers by rights that this process has withdrawn. */

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

/* Whether the thread of the awaited copy still copies, or may begin to. */
static bool is_copying(struct peer *peer)
{
	/*
	 * Before the look at the thread: a thread that is stopped then finds the addresses invalid.
	 * The number of an engine thread that has ended may be another process's.
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

/* Looks once at the awaited copy. True: it has ended. */
static bool check_awaited_copy(struct peer *peer)
{
	if (peer->awaited && copying_here(peer) == peer->awaited && is_copying(peer))
		return false;
	peer->awaited = 0;
	return true;
}

/* Waits for a short copy. */
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
	/* Copies of this process hold the lock of the engine's owner. */
	if (peer->own || peer->excluded)
		return;
	peer->awaited = copying_here(peer);
	peer->cpu_ticks = 0;
	if (peer->awaited)
		await_short_copy(peer);
	peer->of->unsettled |= peer->awaited != 0;
}

/*
 * The epoch was incremented, sequentially consistently: a peer that marks its copy later finds the
 * new epoch (copy_pieces).
 */
static void rights_withdrawn(void *ctx)
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

static bool all_copies_settled(void *ctx)
{
	return peers_settled(ctx);
}

/* Withdraws the rights of all keys from peers, and ends the references to payloads. */
static void refuse_copies(struct peers *peers)
{
	struct peer *peer;

	LIST_FOREACH(peer, &peers->list, link)
	atomic_store(&peers->published->reached[peer->process], 0);
	/* The engine repeats these messages in packets with payload. */
	__atomic_fetch_add(&peers->published->table.references, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&peers->published->table.state.epoch, 1, __ATOMIC_SEQ_CST);
	rights_withdrawn(peers);
}

bool peers_begin_refusal(struct peers *peers)
{
	return !atomic_exchange(&peers->refuses, true);
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

/* A peer that still copies stays known until its copy has ended. */
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

/* Frees peers that tx.c has closed. */
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
	/* The published memory is the parent's. */
	peers->published = NULL;
	peers->owner = NULL;
	free_closed_peers(peers);
}

/* --- Copies of this process. */

static const struct urxe_copy_table *copy_table_of(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	struct peers *peers = ctx;
	struct peer *peer = peers->ops->find(peers->ctx, mac, qpn);

	if (!peer || !may_copy(peer))
		return NULL;
	peers->target = peer;
	return &peer->published->table;
}

static uint64_t length_of(const struct urxe_copy_part *part)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < part->n_local; i++)
		length += part->local[i].length;
	return length;
}

/* Appends the bytes of the part from offset `from` to offset `to`. */
static void add_local(struct peer_pieces *pieces, const struct urxe_copy_part *part, uint64_t from,
		      uint64_t to)
{
	for (uint32_t i = 0; i < part->n_local; i++) {
		const struct urxe_extent *extent = &part->local[i];
		uint64_t begin = from < extent->length ? from : extent->length;
		uint64_t end = to < extent->length ? to : extent->length;

		if (begin < end)
			pieces->local[pieces->n_local++] =
				(struct iovec){(uint8_t *)extent->addr + begin, end - begin};
		from -= begin;
		to -= end;
	}
}

static void add_remote(struct peers *peers, const struct urxe_copy_part *part, uint64_t from,
		       uint64_t to)
{
	for (uint32_t i = 0; i < part->n_remote; i++) {
		const struct urxe_copy_extent *extent = &part->remote[i];
		uint64_t begin = from < extent->length ? from : extent->length;
		uint64_t end = to < extent->length ? to : extent->length;

		if (begin < end)
			peers->remote_pieces[peers->pieces.n_remote++] = (struct iovec){
				(void *)(uintptr_t)(extent->addr + begin), end - begin};
		from -= begin;
		to -= end;
	}
}

/* Bytes of a WRITE before its last 8. */
static uint64_t length_before_tail(uint64_t length)
{
	const uint64_t tail = sizeof(uint64_t);

	return length > tail ? length - tail : 0;
}

/*
 * The kernel copies local pieces in their order, so the last 8 bytes of a WRITE are a piece of
 * their own. As a remote piece they would cost 0.34 us, since the kernel looks up its pages.
 */
static void lay_out_pieces(struct peers *peers, const struct urxe_copy_job *job)
{
	struct peer_pieces *pieces = &peers->pieces;

	pieces->n_local = pieces->n_remote = 0;
	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct urxe_copy_part *part = &job->parts[i];
		uint64_t length = length_of(part);
		uint64_t before_tail = job->write ? length_before_tail(length) : 0;

		pieces->lengths[i] = length;
		add_remote(peers, part, 0, length);
		if (before_tail)
			add_local(pieces, part, 0, before_tail);
		add_local(pieces, part, before_tail, length);
	}
}

/* Number of parts that were copied in full. */
static uint32_t parts_of(const struct peer_pieces *pieces, uint32_t n, ssize_t bytes)
{
	uint32_t whole = 0;

	while (whole < n && bytes >= (ssize_t)pieces->lengths[whole])
		bytes -= (ssize_t)pieces->lengths[whole++];
	return whole;
}

/*
 * Mark and checks are sequentially consistent, as are the steps of a peer that withdraws rights
 * (rights_withdrawn): either this process sees the new epoch, or the peer sees the mark, and
 * invalidates the pieces, which were written before.
 */
static ssize_t copy_pieces(struct peers *peers, const struct urxe_copy_job *job)
{
	const struct peer_pieces *pieces = &peers->pieces;
	struct peer *peer = peers->target;
	const union urxe_copy_state *state = &peer->published->table.state;
	const uint32_t shuts = shuts_of(peer->published);
	ssize_t n = 0;

	atomic_store(&peers->published->copying,
		     copying_word(this_thread(), peer->process, ++peers->copies));
	if (!is_shut(shuts) && !is_shut(shuts_of(peers->published)) && is_reached_by(peer) &&
	    __atomic_load_n(&state->word, __ATOMIC_SEQ_CST) == job->state)
		n = (job->write ? process_vm_writev
				: process_vm_readv)(peer->thread, pieces->local, pieces->n_local,
						    peers->remote_pieces, pieces->n_remote, 0);
	if (n < 0 && (errno == ESRCH || errno == EPERM))
		peer->access = ACCESS_REFUSED;
	atomic_store_explicit(&peers->published->copying, 0, memory_order_release);
	atomic_thread_fence(memory_order_acquire);
	return shuts_of(peer->published) == shuts ? n : 0;
}

/* Copies the bytes of one part from offset `from` to offset `to`. */
static bool copy_bytes(struct peers *peers, const struct urxe_copy_job *job,
		       const struct urxe_copy_part *part, uint64_t from, uint64_t to)
{
	peers->pieces.n_local = peers->pieces.n_remote = 0;
	add_remote(peers, part, from, to);
	add_local(&peers->pieces, part, from, to);
	return copy_pieces(peers, job) == (ssize_t)(to - from);
}

/* Returns the number of WRITEs that were copied in full, each by a call for its last 8 bytes alone.
 */
static uint32_t write_in_order(struct peers *peers, const struct urxe_copy_job *job)
{
	uint32_t whole;

	for (whole = 0; whole < job->n_parts; whole++) {
		const struct urxe_copy_part *part = &job->parts[whole];
		uint64_t length = length_of(part), before_tail = length_before_tail(length);

		if (before_tail && !copy_bytes(peers, job, part, 0, before_tail))
			break;
		atomic_thread_fence(memory_order_seq_cst);
		if (!copy_bytes(peers, job, part, before_tail, length))
			break;
	}
	return whole;
}

static uint32_t copy_at_once(struct peers *peers, const struct urxe_copy_job *job)
{
	lay_out_pieces(peers, job);
	return parts_of(&peers->pieces, job->n_parts, copy_pieces(peers, job));
}

static uint32_t copy_with_peer(void *ctx, const struct urxe_copy_job *job)
{
	struct peers *peers = ctx;
	struct peer *peer = peers->target;
	uint32_t whole;

	before_call(peers); /* a copy takes up to some ms */
	if (job->write && !STORES_STAY_IN_ORDER)
		whole = write_in_order(peers, job);
	else
		whole = copy_at_once(peers, job);
	/* The payload may come from another process, if the peer has ended meanwhile. */
	return owner_of(peer) == peer->thread ? whole : 0;
}

/* urxe_copy_ops.look_or_wake. The engine thread of this process itself cannot poll while its
 * program posts. */
static bool look_or_wake_peer(void *ctx, uint64_t now)
{
	struct peer *peer = ((struct peers *)ctx)->target;
	uint32_t polls = __atomic_load_n(&peer->published->polls, __ATOMIC_RELAXED);

	if (peer->own)
		return false;
	if (peer_poll_look(&peer->poll, polls, now))
		return true;
	if (peer_poll_wakes(&peer->poll, now))
		vnic_outbox_wake(peer->outbox);
	return false;
}

const struct urxe_copy_ops peers_copy_ops = {
	.table = copy_table_of,
	.copy = copy_with_peer,
	.look_or_wake = look_or_wake_peer,
	.withdrawn = rights_withdrawn,
	.settled = all_copies_settled,
};

bool peer_has_ended(const struct peer *peer)
{
	return owner_of(peer) & FUTEX_OWNER_DIED;
}

/* --- Referenced payloads. */

bool peer_pulls(const struct peer *peer)
{
	return peer->of->published && !atomic_load(&peer->of->refuses) && is_reached_by(peer) &&
	       !is_shut(shuts_of(peer->of->published)) && !is_shut(shuts_of(peer->published));
}

/* Whether the reference is still valid: the sender's engine has not given the memory back. */
static bool is_valid(const struct peer *peer, const struct urxe_reference *reference)
{
	return owner_of(peer) == peer->thread &&
	       __atomic_load_n(&peer->published->table.references, __ATOMIC_RELAXED) ==
		       reference->generation;
}

/*
 * Lists the pieces of the payload, each of which is copied once, because any process that can write
 * to the inbox may change them. Wrong addresses and lengths make the copy fail or too short.
 */
static uint32_t list_pieces(const struct urxe_reference *reference, struct iovec *remote)
{
	uint32_t n = reference->n_pieces;

	if (!n) {
		remote[0] =
			(struct iovec){(void *)(uintptr_t)reference->address, reference->length};
		return 1;
	}
	if (n > URXE_REFERENCE_PIECES)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		struct urxe_reference_piece piece;

		memcpy(&piece, reference->pieces + i * sizeof(piece), sizeof(piece));
		remote[i] = (struct iovec){(void *)(uintptr_t)piece.address, piece.length};
	}
	return n;
}

static bool copy_payload(const struct peer *peer, const struct urxe_reference *reference,
			 const struct urxe_extent *to, uint32_t n)
{
	/* Not on the stack, which may be small. No copy is under way that uses these lists. */
	struct iovec *local = peer->of->pieces.local, *remote = peer->of->pieces_of_peer;
	uint32_t n_remote = list_pieces(reference, remote);

	for (uint32_t i = 0; i < n; i++)
		local[i] = (struct iovec){to[i].addr, to[i].length};
	return n_remote && process_vm_readv(peer->thread, local, n, remote, n_remote, 0) ==
				   (ssize_t)reference->length;
}

bool peer_pull(void *dev_ctx, const struct urxe_reference *reference, const struct urxe_extent *to,
	       uint32_t n)
{
	const struct peer *peer = reference->sender;
	uint32_t shuts;

	(void)dev_ctx;
	if (!peer->of->published || atomic_load(&peer->of->refuses) ||
	    peer->access != ACCESS_GRANTED || is_shut(shuts_of(peer->of->published)))
		return false;
	shuts = shuts_of(peer->published);
	if (is_shut(shuts) || !is_valid(peer, reference) || !copy_payload(peer, reference, to, n))
		return false;
	atomic_thread_fence(memory_order_acquire);
	return is_valid(peer, reference) && shuts_of(peer->published) == shuts;
}
