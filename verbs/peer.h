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
 * All functions but peer_live and peer_no_more_arenas want the port's lock.
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
 * "packet", where packets alone may use what memory is shared, or the kernel or the C library has
 * no restartable sequences (rseq(2)).
 */
struct urxe_direct_table *peer_init(void *card, void *book);
/* Whether our memory may be shared: not where URXE_TRANSPORT is "copy", or as for peer_init. */
bool peer_shares(void);
/* Then the card says where our arena (arena.h) is; false where there can be none. */
bool peer_open_arena(void);
/* From now on no other process's arena is mapped. Any thread, without the port's lock. */
void peer_no_more_arenas(void);
/* Those that are go. */
void peer_leave_arenas(void);
/* They are going to be unmapped. */
void peer_done(void);
/* For the engine's thread: the card says that this process lives, until the thread ends. */
void peer_live(void);
/* The engine's thread looks for frames once more, in its vigil. */
void peer_turn(void);
/* In a forked child. */
void peer_in_child(void);

/*
 * By the card and book of a process's inbox, which has to stay until peer_close. `process` is its
 * number (VNIC_PROCESS); `own`: that process is this one. NULL: no memory.
 */
struct peer *peer_open(struct vnic_outbox *outbox, uint32_t process, bool own);
/* NULL is allowed. */
void peer_close(struct peer *peer);

/*
 * Payloads of packets that stay in their sender's arena. Each of these takes a NULL peer, too, of
 * which nothing is known.
 */

/* Whether that process has our arena mapped. `process` is our number. */
bool peer_lends_to(const struct peer *peer, uint32_t process);
/* And takes the payloads without an ICRC over them, as long as nothing is recalled. */
bool peer_trusts(const struct peer *peer);
/* How often anything was, by us; does so; and by that one, or NULL where we trust nobody. */
uint32_t peer_recalls(void);
void peer_recall(void);
const uint32_t *peer_recalls_of(const struct peer *peer);
/* It has not, and has a use for it: whether to tell it now. */
bool peer_wishes_to_lend(struct peer *peer);
/* It has told us so: maps its arena, where it lets us. */
void peer_reach(struct peer *peer);
/* Bytes of its arena, whatever they are by now; NULL: all of them are not to be had. */
const uint8_t *peer_lent(const struct peer *peer, uint64_t at, uint32_t length);

#endif
