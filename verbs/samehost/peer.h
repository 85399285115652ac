/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: other processes of this user on this host, and copies to and from their memory by
 * process_vm_writev(2) and process_vm_readv(2). docs/same-host.md describes the protocol.
 *
 * The port calls peer_init, peer_done and peer_fork_child; tx.c opens and closes peers; the
 * engine calls peer_ops. All functions need the lock of the port, except for peer_publish_thread,
 * peer_refuse_copies and peer_refuses_copies.
 */
#ifndef URXE_VERBS_SAMEHOST_PEER_H
#define URXE_VERBS_SAMEHOST_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/direct.h>

struct urxe_extent;
struct urxe_reference;
struct vnic_outbox;
struct peer;

/* The engine's direct transport. */
extern const struct urxe_direct_ops peer_ops;

/*
 * Fills the published memory, VNIC_INBOX_PUBLISHED_SIZE bytes of zeros; `process` is this process's
 * number (VNIC_PROCESS). Returns the table for the engine. NULL if this process takes part in no
 * copies: URXE_TRANSPORT is "packet", or /proc does not show what peers must know.
 */
struct urxe_direct_table *peer_init(void *published, uint32_t process);
/* Before the published memory is unmapped. */
void peer_done(void);
/*
 * From now on all messages of this process go in packets, those that it sends and those that it
 * gets. A copy from or to its memory would wait for its handler of page faults (userfaultfd), with
 * the lock of the copying process's port held. Any thread, without the lock. It stays so until the
 * process ends.
 */
void peer_refuse_copies(void);
/* Whether peer_refuse_copies was called. Any thread. */
bool peer_refuses_copies(void);
/* In the engine thread, when it starts: peers may copy until that thread ends. */
void peer_publish_thread(void);
/* Counts a poll of the engine thread, for samehost/peer_poll.h of peers. */
void peer_count_poll(void);
/* In a forked child. */
void peer_fork_child(void);

/*
 * Creates the peer `process`, the owner of the outbox's inbox; the peer closes the outbox. NULL: no
 * memory, and the outbox stays open.
 */
struct peer *peer_open(struct vnic_outbox *outbox, uint32_t process);
void peer_close(struct peer *peer);

/* Whether the peer copies referenced payloads (struct urxe_reference) from this process. */
bool peer_pulls(const struct peer *peer);
/* urxe_ops.pull; the sender of the reference is a struct peer. */
bool peer_pull(void *dev_ctx, const struct urxe_reference *reference, const struct urxe_extent *to,
	       uint32_t n);

/*
 * Whether all copies of peers have ended that may use rights which the engine has withdrawn. Until
 * then, the program must not get the memory back. The caller waits without the lock.
 */
bool peer_settled(void);

#endif
