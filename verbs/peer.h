/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of other processes of this user: the direct transport (rxe/direct.h) by
 * process_vm_readv(2) and process_vm_writev(2).
 *
 * With its inbox each process hands out two pages of its own. On its card, which it alone can
 * write to, stands the table of what others may do with its memory, who it is, and whether it
 * lives. In the book each of the others has a slot, in which that one says when it is inside.
 *
 * A card is as good as its writer: it decides what is done with that process's memory, and
 * nothing else. The book is anybody's: who writes nonsense there may keep the owner waiting
 * for a while, and then nobody is let in any more.
 *
 * All functions but peer_live want the port's lock.
 */
#ifndef URXE_VERBS_PEER_H
#define URXE_VERBS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/direct.h>

struct vnic_outbox;
struct peer; /* another process, as seen from here */

extern const struct urxe_direct_ops peer_ops;

/*
 * Readies our own card and book, VNIC_INBOX_PUBLISHED_SIZE and VNIC_INBOX_SHARED_SIZE bytes of
 * zeros, and gives the table; NULL where there is no direct transport here: URXE_TRANSPORT is
 * "packet", or the kernel or the C library has no restartable sequences (rseq(2)).
 */
struct urxe_direct_table *peer_init(void *card, void *book);
/* They are going to be unmapped. */
void peer_done(void);
/* For the engine's thread: the card says that this process lives, until the thread ends. */
void peer_live(void);
/* The engine's thread looks for frames once more, in its vigil. */
void peer_turn(void);
/* In a forked child. */
void peer_in_child(void);

/*
 * By the card and book of a process's inbox, which has to stay until peer_close. `own`: that
 * process is this one. NULL: no memory.
 */
struct peer *peer_open(struct vnic_outbox *outbox, bool own);
/* NULL is allowed. */
void peer_close(struct peer *peer);

#endif
