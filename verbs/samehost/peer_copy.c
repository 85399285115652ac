/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies by this process to and from the memory of its peers: WRITEs and READs of the engine's copy
 * transport, and payloads to which frames of an inbox refer.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include <rxe/rxe.h>
#include <vnic/inbox.h>

#include "peer_private.h"

/*
 * Whether other processors see stores in the order in which a processor makes them. If not, a
 * program may see the pieces of one system call arrive in any order.
 */
#if defined(__x86_64__)
#define STORES_STAY_IN_ORDER true
#else
#define STORES_STAY_IN_ORDER false
#endif

_Static_assert(URXE_REFERENCE_PIECES <= URXE_COPY_EXTENTS, "see copy_payload");

/* --- The copy transport. */

static const struct urxe_copy_table *copy_table_of(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	struct peers *peers = ctx;
	struct peer *peer = peers->ops->find(peers->ctx, mac, qpn);

	if (!peer || !peer_may_copy(peer))
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

/* Appends the local addresses of the part's bytes from offset `from` to offset `to`. */
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
		const struct urxe_remote_extent *extent = &part->remote[i];
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
 * Lists the pieces of all parts for one system call. The last 8 bytes of a WRITE are a local piece
 * of their own, because the kernel copies local pieces in their order: the peer's program may spin
 * on these bytes. As a remote piece they would cost 0.34 us, since the kernel looks up its pages.
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

/* Returns how many of the n parts were copied in full, if the system call has copied `bytes`. */
static uint32_t parts_of(const struct peer_pieces *pieces, uint32_t n, ssize_t bytes)
{
	uint32_t whole = 0;

	while (whole < n && bytes >= (ssize_t)pieces->lengths[whole])
		bytes -= (ssize_t)pieces->lengths[whole++];
	return whole;
}

/*
 * Copies the listed pieces, if the rights that the peer has published are still those that the
 * engine has read (job->state). Returns the number of bytes; 0 or less: none were copied, or they
 * do not count.
 *
 * The mark (`copying`) and the checks are sequentially consistent, as are the steps of a peer that
 * withdraws rights (peers_rights_withdrawn). So either this process sees the new epoch, or the peer
 * sees the mark and invalidates the pieces, which were written before.
 */
static ssize_t copy_pieces(struct peers *peers, const struct urxe_copy_job *job)
{
	const struct peer_pieces *pieces = &peers->pieces;
	struct peer *peer = peers->target;
	const union urxe_copy_state *state = &peer->published->table.state;
	const uint32_t shuts = shuts_of(peer->published);
	ssize_t n = 0;

	atomic_store(&peers->published->copying,
		     copying_word(peers_this_thread(), peer->process, ++peers->copies));
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

/* Copies the bytes of one part from offset `from` to offset `to`. True: all of them. */
static bool copy_bytes(struct peers *peers, const struct urxe_copy_job *job,
		       const struct urxe_copy_part *part, uint64_t from, uint64_t to)
{
	peers->pieces.n_local = peers->pieces.n_remote = 0;
	add_remote(peers, part, from, to);
	add_local(&peers->pieces, part, from, to);
	return copy_pieces(peers, job) == (ssize_t)(to - from);
}

/* Copies the WRITEs one by one, each with a system call for its last 8 bytes behind that for the
 * others. Returns the number of WRITEs that were copied in full. */
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

	before_call(peers); /* a copy may take some ms */
	if (job->write && !STORES_STAY_IN_ORDER)
		whole = write_in_order(peers, job);
	else
		whole = copy_at_once(peers, job);
	/* The copy does not count if the peer has ended: its TID may be another process's by now.
	 */
	return owner_of(peer) == peer->thread ? whole : 0;
}

/* urxe_copy_ops.polls_or_wake: whether the peer's engine thread busy-polls, so that packets are
 * faster than copies; if not, may wake it. False without a look if the peer is this process: its
 * engine thread cannot poll while its program posts. */
static bool polls_or_wake(void *ctx, uint64_t now)
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

static bool all_copies_settled(void *ctx)
{
	return peers_settled(ctx);
}

const struct urxe_copy_ops peers_copy_ops = {
	.table = copy_table_of,
	.copy = copy_with_peer,
	.polls_or_wake = polls_or_wake,
	.withdrawn = peers_rights_withdrawn,
	.settled = all_copies_settled,
};

/* --- Referenced payloads. */

bool peer_pulls(const struct peer *peer)
{
	return peer->of->published && !atomic_load(&peer->of->refuses) && is_reached_by(peer) &&
	       !is_shut(shuts_of(peer->of->published)) && !is_shut(shuts_of(peer->published));
}

/* Whether the reference is still valid: the sender lives, and has not changed its generation, which
 * would permit its program to use the memory for something else. */
static bool is_valid(const struct peer *peer, const struct urxe_reference *reference)
{
	return owner_of(peer) == peer->thread &&
	       __atomic_load_n(&peer->published->table.references, __ATOMIC_RELAXED) ==
		       reference->generation;
}

/*
 * Lists the pieces of the payload in `remote`, and returns their number; 0: the frame names too
 * many. Copies each piece's address and length once, because any process that can write to the
 * inbox may change them. Wrong addresses and lengths make the copy fail or too short.
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
	/* Lists of struct peers, which no copy uses now: the stack may be too small for them. */
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
