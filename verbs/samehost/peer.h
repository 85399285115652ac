/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: other processes of this user on this host, and copies to and from their memory by
 * process_vm_writev(2) and process_vm_readv(2) (peer_copy.c). docs/same-host.md describes the
 * protocol. liburxe and the device process of a virtual machine use it.
 *
 * A process has one struct peers, at the same address until it ends. All functions need the lock of
 * the engine's owner, except for peers_publish_thread, peers_begin_refusal, peers_refusing, and
 * peers_shut in a signal handler.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_H
#define URXE_VERBS_SAMEHOST_PEER_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rxe/copy_transport.h>

struct urxe_extent;
struct urxe_reference;
struct vnic_outbox;
struct peer;
struct published;

/* Callbacks of the owner of the engine; each gets the ctx of peers_init. */
struct peers_ops {
	/* Returns the peer with that QPN of the device with that MAC; NULL: there is none, or it
	 * may not be reached now. */
	struct peer *(*find)(void *ctx, const uint8_t mac[6], uint32_t qpn);
	/* Called before system calls that may take long, so that the owner can release the lock
	 * word of a peer's inbox first. NULL is allowed. */
	void (*before_call)(void *ctx);
	/* Called when this process excludes the peer `pid` from copies: the peer has marked a copy
	 * to or from this process, and made none. NULL is allowed. */
	void (*excluded)(void *ctx, int32_t pid);
	/* Whether this process has leased the block of QPNs (VNIC_BLOCK). NULL: it has only one. */
	bool (*has_block)(void *ctx, uint32_t block);
};

/* A copy's arguments for process_vm_readv or process_vm_writev, without peers.remote_pieces. */
struct peer_pieces {
	struct iovec local[URXE_COPY_EXTENTS + URXE_COPY_PARTS];
	uint32_t n_local, n_remote;        /* entries in `local` and in peers.remote_pieces */
	uint64_t lengths[URXE_COPY_PARTS]; /* bytes of each part (WRITE or READ) of the copy */
};

/* This process, and its peers. All 0 before peers_init. Only peer.c and peer_copy.c use the
 * members. */
struct peers {
	const struct peers_ops *ops;
	void *ctx;
	LIST_HEAD(, peer) list;
	atomic_bool refuses;         /* peers_begin_refusal was called; never cleared */
	struct published *published; /* NULL: the process takes part in no copies */
	/* The futex word in the published memory that holds the engine thread's TID; NULL: this
	 * process has no published memory. */
	uint32_t *owner;
	uint64_t token; /* these four have this process's own values, as in struct published */
	uint64_t pid_namespace;
	int32_t pid;
	uint32_t process;
	uint32_t copies;     /* number of copies by this process so far */
	struct peer *target; /* the peer of the next copy, which peers_copy_ops.table has found */
	bool unsettled;      /* this process awaits the end of a copy of some peer */
	struct peer_pieces pieces;
	/*
	 * The remote addresses of this process's copy. A peer that withdraws rights overwrites them
	 * with invalid addresses.
	 */
	struct iovec remote_pieces[URXE_COPY_EXTENTS];
	/* Addresses in a peer's memory for one system call: of the peer's remote_pieces, to
	 * overwrite them, or of a referenced payload, to copy it. */
	struct iovec pieces_of_peer[URXE_COPY_EXTENTS];
	/* The robust futex list of the engine thread, by which the kernel marks the thread's end
	 * (peers_publish_thread). */
	struct robust_list_head robust_head;
	struct robust_list robust_entry;
};

/* The engine's copy transport; urxe_dev_attr.copy_ctx is the struct peers. */
extern const struct urxe_copy_ops peers_copy_ops;

/* Sets ops and ctx. Before all other functions. */
void peers_init(struct peers *peers, const struct peers_ops *ops, void *ctx);
/*
 * Fills the published memory, which has VNIC_INBOX_PUBLISHED_SIZE bytes, all 0. `process`: this
 * process's number (VNIC_BLOCK). Returns the table in which the engine publishes its rights to
 * peers (urxe_dev_attr.copy_table). NULL if this process takes part in no copies: URXE_TRANSPORT is
 * "packet", or the kernel does not tell what peers must know (/proc, getrandom(2)).
 */
struct urxe_copy_table *peers_publish(struct peers *peers, void *published, uint32_t process);
/* The number that the peer has published in its memory: below VNIC_BLOCKS, but perhaps false. */
uint32_t peer_published_process(const void *published);
/* Call it before the published memory is unmapped: from then on this process makes and permits no
 * copies. Frees closed peers. */
void peers_done(struct peers *peers);
/*
 * From now on this process copies nothing. The engine's owner then calls peers_refuse, with the
 * lock; once peers_settled returns true, peers copy nothing to or from its memory either, and all
 * messages go in packets. For a program that is about to handle its page faults itself
 * (userfaultfd): a copy would wait for that handler, with the lock of the copying process's engine
 * held. Cannot be undone.
 */
void peers_begin_refusal(struct peers *peers);
/* After peers_begin_refusal: withdraws the right to copy from all peers. */
void peers_refuse(struct peers *peers);
/* Whether peers_begin_refusal was called. */
bool peers_refusing(const struct peers *peers);
/*
 * The engine thread calls this function at its start: it publishes the thread's TID. Peers may copy
 * only until the thread ends. The kernel marks that end in the published memory (peer_has_ended),
 * also if this process takes part in no copies.
 */
void peers_publish_thread(struct peers *peers);
/* Counts a busy poll of this process's engine thread in the published memory. Peers see by the
 * counter that the thread polls (samehost/peer_poll.h). */
void peers_count_poll(struct peers *peers);
/*
 * From peers_shut to peers_reopen, every copy to or from the memory of this process fails,
 * whichever process makes it. For a device process: while its NIC is not active, the machine is
 * paused or the hypervisor logs written pages. Also before its handler of SIGBUS replaces a lost
 * page by zeros; the handler calls peers_shut itself.
 */
void peers_shut(struct peers *peers);
void peers_reopen(struct peers *peers);
/* In a forked child: forgets the published memory, which is the parent's, and frees closed
 * peers. */
void peers_fork_child(struct peers *peers);

/*
 * Creates the peer that owns the inbox behind `outbox`; `block`: VNIC_BLOCK of one of its QPNs.
 * peer_close() will close the outbox. NULL: no memory, and the outbox stays the caller's.
 */
struct peer *peer_open(struct peers *peers, struct vnic_outbox *outbox, uint32_t block);
/* Withdraws the peer's rights to copy; frees it and closes its outbox, at once or when its copy in
 * progress has ended. */
void peer_close(struct peer *peer);

/*
 * Whether the peer's engine thread has ended, so that no thread takes frames from the peer's inbox.
 * The daemon closes that inbox (vnic_outbox_closed) only if the daemon knows the process. A new
 * daemon does not know a process that was stopped during the replacement and then killed.
 */
bool peer_has_ended(const struct peer *peer);
/* Whether the peer copies referenced payloads (struct urxe_reference) from this process. */
bool peer_pulls(const struct peer *peer);
/* urxe_ops.pull: copies a referenced payload from the memory of its sender, a struct peer. False:
 * the payload was not copied, or may be wrong. */
bool peer_pull(void *dev_ctx, const struct urxe_reference *reference, const struct urxe_extent *to,
	       uint32_t n);

/*
 * Whether all copies of peers have ended that may use rights which the engine has withdrawn. Until
 * then, the memory must not be given back. The caller waits, and liburxe.so does not hold
 * adapter.lock meanwhile.
 */
bool peers_settled(struct peers *peers);

#endif
