/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of other processes of this user: the direct transport (rxe/direct.h) by
 * process_vm_readv(2) and process_vm_writev(2).
 *
 * With its inbox each process hands out a page of its own, which has the table of what
 * others may do with its memory, says who it is and whether it lives, and has a slot for
 * each of the others, in which that one says when it is inside. What is written there is
 * as good as its writer: of the same user, who might use ptrace(2) as well.
 *
 * All functions but peer_live want the port's lock.
 */
#ifndef URXE_VERBS_PEER_H
#define URXE_VERBS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/direct.h>

struct peer;      /* another process, as seen from here */
struct peer_page; /* what it hands out: VNIC_INBOX_SHARED bytes, all zero at first */

extern const struct urxe_direct_ops peer_ops;

/*
 * Readies our own page, and gives the table in it; NULL where there is no direct transport
 * here: URXE_TRANSPORT is "packet", or the kernel or the C library has no restartable
 * sequences (rseq(2)).
 */
struct urxe_direct_table *peer_page_init(void *page);
/* The page is going to be unmapped. */
void peer_page_done(void);
/* For the engine's thread: the page says that this process lives, until the thread ends. */
void peer_live(void);
/* In a forked child. */
void peer_in_child(void);

/* By the page of another process's inbox, which has to stay until peer_close. NULL: no memory. */
struct peer *peer_open(void *page);
/* NULL is allowed. */
void peer_close(struct peer *peer);

#endif
