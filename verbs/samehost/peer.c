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

#include "interpose/own_fd.h"
#include "port/port.h"
#include "published.h"
#include "report/log.h"
#include "samehost/peer_poll.h"
#include "thread_state.h"

/*
 * Spins until a peer's copy ends, before its thread is looked up in /proc: about as long as a short
 * copy.
 */
#define SPINS 1000
/*
 * CPU seconds of a thread after which its mark counts as wrong: a copy of URXE_DIRECT_MAX bytes
 * takes less than a tenth.
 */
#define STALE_COPY_S 1

enum access { ACCESS_UNKNOWN, ACCESS_GRANTED, ACCESS_REFUSED };

struct peer {
	const struct published *published;
	struct vnic_outbox *outbox;
	uint32_t process; /* its number */
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
	uint64_t cpu_ticks; /* CPU time of the copying thread at the first look */
	LIST_ENTRY(peer) link;
};

static LIST_HEAD(, peer) peers = LIST_HEAD_INITIALIZER(peers);
/* peer_refuse_copies was called; never cleared. */
static atomic_bool refuses_copies;

/* This process. */
static struct {
	struct published *published; /* NULL: it takes part in no copies */
	uint64_t token;
	uint64_t pid_namespace;
	int32_t pid;
	uint32_t process;
	uint32_t copies;     /* so far */
	struct peer *target; /* of the next copy */
	bool unsettled;      /* a copy of some peer is awaited */
	/*
	 * The remote addresses of this process's copy. A peer that withdraws rights overwrites them
	 * with invalid addresses.
	 */
	struct iovec remote_pieces[URXE_DIRECT_PARTS];
} self;

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
	const char *transport = getenv("URXE_TRANSPORT");

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

static bool identify_self(void)
{
	struct stat namespace;

	if (getrandom(&self.token, sizeof(self.token), GRND_NONBLOCK) != sizeof(self.token) ||
	    !self.token || !proc_is_ours() || stat("/proc/self/ns/pid", &namespace))
		return false;
	self.pid = getpid();
	self.pid_namespace = namespace.st_ino;
	return true;
}

struct urxe_direct_table *peer_init(void *published, uint32_t process)
{
	struct published *p = published;

	if (packets_only() || !identify_self())
		return NULL;
	p->token = self.token;
	p->token_at = (uintptr_t)&self.token;
	p->remote_pieces = (uintptr_t)self.remote_pieces;
	p->pid_namespace = self.pid_namespace;
	p->pid = self.pid;
	self.process = process;
	self.published = p;
	return &p->table;
}

/*
 * The kernel follows a thread's robust list when the thread ends. glibc has set its own list for
 * robust mutexes, of which this thread locks none.
 */
void peer_publish_thread(void)
{
	static struct robust_list entry;
	static struct robust_list_head head;
	uint32_t *owner;

	if (!self.published)
		return;
	owner = &self.published->table.state.owner;
	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (long)((uintptr_t)owner - (uintptr_t)&entry);
	head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &head, sizeof(head)))
		return;
	__atomic_store_n(owner, (uint32_t)this_thread(), __ATOMIC_RELEASE);
}

void peer_count_poll(void)
{
	if (self.published)
		__atomic_store_n(&self.published->polls, self.published->polls + 1,
				 __ATOMIC_RELAXED);
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
	uint8_t bits[URXE_DIRECT_PARTS * BYTES];
	const struct iovec local = {bits, sizeof(bits)};
	const uint64_t first = peer->published->remote_pieces + offsetof(struct iovec, iov_base);
	struct iovec remote[URXE_DIRECT_PARTS];

	memset(bits, 0x80, sizeof(bits));
	for (uint32_t i = 0; i < URXE_DIRECT_PARTS; i++)
		remote[i] = (struct iovec){
			(void *)(uintptr_t)(first + i * sizeof(struct iovec) + AT), BYTES};
	return process_vm_writev(peer->thread, &local, 1, remote, URXE_DIRECT_PARTS, 0) ==
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
	if (!token || p->pid_namespace != self.pid_namespace ||
	    peer->own != (token == self.token) || peer->own != is_own_thread(peer->thread))
		return false;
	return process_started_at(peer->pid, &peer->start) && reads_token(peer->thread, p, token) &&
	       invalidate_pieces(peer);
}

static void find_access(struct peer *peer)
{
	peer->thread = owner_of(peer);
	if (!peer->thread || !self.published)
		return;
	peer->access = ACCESS_REFUSED;
	tx_unlock_inbox(&port.tx); /* system calls follow */
	if (!verify_identity(peer))
		return;
	peer->access = ACCESS_GRANTED;
	if (!atomic_load(&refuses_copies))
		atomic_store(&self.published->reached[peer->process], peer->published->token);
}

/* Whether the peer can interrupt copies of this process. */
static bool is_reached_by(const struct peer *peer)
{
	return atomic_load(&peer->published->reached[self.process]) == self.token;
}

/* Whether this process may copy to and from the memory of the peer. */
static bool may_copy(struct peer *peer)
{
	if (atomic_load(&refuses_copies))
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

struct peer *peer_open(struct vnic_outbox *outbox, uint32_t process)
{
	struct peer *peer = malloc(sizeof(*peer));

	if (!peer)
		return NULL;
	*peer = (struct peer){
		.published = vnic_outbox_published(outbox),
		.outbox = outbox,
		.process = process,
		.own = process == self.process,
	};
	LIST_INSERT_HEAD(&peers, peer, link);
	find_access(peer);
	return peer;
}

/* --- Copies of peers by rights that this process has withdrawn. */

static uint64_t copying_here(const struct peer *peer)
{
	uint64_t copying = atomic_load(&peer->published->copying);

	return copying && copying_process(copying) == self.process ? copying : 0;
}

static void exclude_peer(struct peer *peer)
{
	log_warning("process %d marks a copy in our memory and makes none: it gets packets",
		    peer->pid);
	peer->access = ACCESS_REFUSED;
	peer->excluded = true;
	atomic_store(&self.published->reached[peer->process], 0);
}

/* Whether the thread of the awaited copy still copies, or may begin to. */
static bool is_copying(struct peer *peer)
{
	/*
	 * Before the look at the thread: a thread that is stopped then finds the addresses invalid.
	 */
	bool invalid = invalidate_pieces(peer);
	uint64_t ticks;

	switch (thread_state(peer->pid, peer->start, copying_thread(peer->awaited), &ticks)) {
	case THREAD_GONE: return false;
	case THREAD_STOPPED:
	case THREAD_ELSEWHERE: return !invalid;
	default: break;
	}
	if (!peer->cpu_ticks)
		peer->cpu_ticks = ticks + 1;
	if (ticks < peer->cpu_ticks + (uint64_t)(STALE_COPY_S * sysconf(_SC_CLK_TCK)))
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
		tx_unlock_inbox(&port.tx); /* system calls follow */
	check_awaited_copy(peer);
}

static void await_copy_of(struct peer *peer)
{
	/* Copies of this process hold the lock of the port. */
	if (peer->own || peer->excluded)
		return;
	peer->awaited = copying_here(peer);
	peer->cpu_ticks = 0;
	if (peer->awaited)
		await_short_copy(peer);
	self.unsettled |= peer->awaited != 0;
}

/*
 * The epoch was incremented, sequentially consistently: a peer that marks its copy later finds the
 * new epoch (copy_pieces).
 */
static void rights_withdrawn(void *ctx)
{
	struct peer *peer;

	(void)ctx;
	LIST_FOREACH(peer, &peers, link)
	await_copy_of(peer);
}

bool peer_settled(void)
{
	struct peer *peer, *next;
	bool all = true;

	if (!self.unsettled)
		return true;
	for (peer = LIST_FIRST(&peers); peer; peer = next) {
		next = LIST_NEXT(peer, link);
		if (!check_awaited_copy(peer))
			all = false;
		else if (peer->closed)
			free_peer(peer);
	}
	self.unsettled = !all;
	return all;
}

static bool all_copies_settled(void *ctx)
{
	(void)ctx;
	return peer_settled();
}

/* Withdraws the rights of all keys from peers, and ends the references to payloads. */
static void refuse_copies(void)
{
	struct peer *peer;

	LIST_FOREACH(peer, &peers, link)
	atomic_store(&self.published->reached[peer->process], 0);
	/* The engine repeats these messages in packets with payload. */
	__atomic_fetch_add(&self.published->table.references, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&self.published->table.state.epoch, 1, __ATOMIC_SEQ_CST);
	rights_withdrawn(NULL);
}

void peer_refuse_copies(void)
{
	if (atomic_exchange(&refuses_copies, true) || !fd_is_owner())
		return;
	port_lock();
	if (self.published)
		refuse_copies();
	port_unlock_settled();
}

bool peer_refuses_copies(void)
{
	return atomic_load_explicit(&refuses_copies, memory_order_relaxed);
}

/* A peer that still copies stays known until its copy has ended. */
void peer_close(struct peer *peer)
{
	if (self.published) {
		atomic_store(&self.published->reached[peer->process], 0);
		__atomic_fetch_add(&self.published->table.state.epoch, 1, __ATOMIC_SEQ_CST);
		await_copy_of(peer);
	}
	peer->closed = true;
	if (!peer->awaited)
		free_peer(peer);
}

/* Frees peers that tx.c has closed. */
static void free_closed_peers(void)
{
	struct peer *peer, *next;

	for (peer = LIST_FIRST(&peers); peer; peer = next) {
		next = LIST_NEXT(peer, link);
		if (peer->closed)
			free_peer(peer);
	}
	self.unsettled = false;
}

void peer_done(void)
{
	free_closed_peers();
	self.published = NULL;
}

void peer_fork_child(void)
{
	thread = 0;
	/* The published memory is the parent's. */
	self.published = NULL;
	free_closed_peers();
}

/* --- Copies of this process. */

static const struct urxe_direct_table *direct_table_of(void *ctx, const uint8_t mac[6],
						       uint32_t qpn)
{
	struct peer *peer = tx_peer(&port.tx, mac, qpn);

	(void)ctx;
	if (!peer || !may_copy(peer))
		return NULL;
	self.target = peer;
	return &peer->published->table;
}

/* The arguments of process_vm_readv and process_vm_writev for a copy. */
struct pieces {
	struct iovec local[URXE_DIRECT_EXTENTS + URXE_DIRECT_PARTS];
	uint32_t n_local;
	uint64_t lengths[URXE_DIRECT_PARTS];
};

static uint64_t length_of(const struct urxe_direct_part *part)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < part->n_local; i++)
		length += part->local[i].length;
	return length;
}

/*
 * The kernel copies local pieces in their order, so the last 8 bytes of a WRITE are a piece of
 * their own. As a remote piece they would cost 0.34 us, since the kernel looks up its pages.
 */
static void add_local(struct pieces *pieces, const struct urxe_direct_part *part, uint64_t rest)
{
	for (uint32_t i = 0; i < part->n_local; i++) {
		uint8_t *addr = part->local[i].addr;
		uint64_t left = part->local[i].length;

		if (rest && rest < left) {
			pieces->local[pieces->n_local++] = (struct iovec){addr, rest};
			addr += rest;
			left -= rest;
			rest = 0;
		}
		pieces->local[pieces->n_local++] = (struct iovec){addr, left};
		rest -= rest < left ? rest : left;
	}
}

static void lay_out_pieces(struct pieces *pieces, const struct urxe_direct_copy *job)
{
	const uint64_t last = sizeof(uint64_t);

	pieces->n_local = 0;
	for (uint32_t i = 0; i < job->n_parts; i++) {
		const struct urxe_direct_part *part = &job->parts[i];
		uint64_t length = length_of(part);

		pieces->lengths[i] = length;
		self.remote_pieces[i] = (struct iovec){(void *)(uintptr_t)part->remote, length};
		add_local(pieces, part, job->write && length > last ? length - last : length);
	}
}

/* Number of parts that were copied in full. */
static uint32_t parts_of(const struct pieces *pieces, uint32_t n, ssize_t bytes)
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
static ssize_t copy_pieces(const struct urxe_direct_copy *job, const struct pieces *pieces)
{
	const struct peer *peer = self.target;
	const union urxe_direct_state *state = &peer->published->table.state;
	ssize_t n = 0;

	atomic_store(&self.published->copying,
		     copying_word(this_thread(), peer->process, ++self.copies));
	if (is_reached_by(peer) && __atomic_load_n(&state->word, __ATOMIC_SEQ_CST) == job->state)
		n = (job->write ? process_vm_writev
				: process_vm_readv)(peer->thread, pieces->local, pieces->n_local,
						    self.remote_pieces, job->n_parts, 0);
	atomic_store_explicit(&self.published->copying, 0, memory_order_release);
	return n;
}

static uint32_t copy_with_peer(void *ctx, const struct urxe_direct_copy *job)
{
	struct peer *peer = self.target;
	struct pieces pieces;
	ssize_t n;

	(void)ctx;
	tx_unlock_inbox(&port.tx); /* a copy takes up to some ms */
	lay_out_pieces(&pieces, job);
	n = copy_pieces(job, &pieces);
	if (n < 0 && (errno == ESRCH || errno == EPERM))
		peer->access = ACCESS_REFUSED;
	/* The payload may come from another process, if the peer has ended meanwhile. */
	if (owner_of(peer) != peer->thread)
		return 0;
	return parts_of(&pieces, job->n_parts, n);
}

/* The engine thread of this process cannot poll while its program posts. */
static bool is_peer_awake(void *ctx, uint64_t now)
{
	struct peer *peer = self.target;
	uint32_t polls = __atomic_load_n(&peer->published->polls, __ATOMIC_RELAXED);

	(void)ctx;
	if (peer->own)
		return false;
	if (peer_poll_look(&peer->poll, polls, now))
		return true;
	if (peer_poll_wakes(&peer->poll, now))
		vnic_outbox_wake(peer->outbox);
	return false;
}

const struct urxe_direct_ops peer_ops = {
	.table = direct_table_of,
	.copy = copy_with_peer,
	.awake = is_peer_awake,
	.withdrawn = rights_withdrawn,
	.settled = all_copies_settled,
};

/* --- Referenced payloads. */

bool peer_pulls(const struct peer *peer)
{
	return self.published && !atomic_load(&refuses_copies) && is_reached_by(peer);
}

/* Whether the reference is still valid: the sender's engine has not given the memory back. */
static bool is_valid(const struct peer *peer, const struct urxe_reference *reference)
{
	return owner_of(peer) == peer->thread &&
	       __atomic_load_n(&peer->published->table.references, __ATOMIC_RELAXED) ==
		       reference->generation;
}

bool peer_pull(void *dev_ctx, const struct urxe_reference *reference, const struct urxe_extent *to,
	       uint32_t n)
{
	const struct peer *peer = reference->sender;
	const struct iovec remote = {(void *)(uintptr_t)reference->address, reference->length};
	struct iovec local[URXE_MAX_SGE];

	(void)dev_ctx;
	if (!self.published || atomic_load(&refuses_copies) || peer->access != ACCESS_GRANTED ||
	    !is_valid(peer, reference))
		return false;
	for (uint32_t i = 0; i < n; i++)
		local[i] = (struct iovec){to[i].addr, to[i].length};
	if (process_vm_readv(peer->thread, local, n, &remote, 1, 0) != (ssize_t)reference->length)
		return false;
	atomic_thread_fence(memory_order_acquire);
	return is_valid(peer, reference);
}
