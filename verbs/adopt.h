/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The whole pages of a small region are moved to the arena (arena.h), where peers have them mapped,
 * too: their contents are copied, and a shared mapping comes to the same addresses. When the region
 * ends they become the program's own again.
 *
 * That is done only where the program cannot tell: to memory that is private and has no file, in
 * a program that has no other thread that could write to it meanwhile, and has nothing open by
 * which the kernel may hold the old pages. A page that the region has only a part of stays.
 *
 * With the port's lock, so that the engine does not touch the pages while they are moved.
 */
#ifndef URXE_VERBS_ADOPT_H
#define URXE_VERBS_ADOPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/*
 * The bytes are going to be a region: what of them lies in the arena, by now. False: nothing does.
 * They are not counted as registered (registered.h) before.
 */
bool adopt(const struct urxe_extent *bytes, struct urxe_shared *shared);
/* Pages that were moved together, of which bytes are some: goes through all, `at` begins at 0. */
bool adopt_next(uint32_t *at, const struct urxe_extent *bytes, struct urxe_extent *pages);
/*
 * Those pages are the program's own again, with what is in them; nobody reaches them by the arena.
 * Other threads may write to them meanwhile.
 */
void adopt_return(const struct urxe_extent *pages);
/* All of the bytes where no region is any more. */
void adopt_release(const struct urxe_extent *bytes);

/*
 * Pages that the kernel may hold by then (pinned.h), or that cannot be mapped anew as the program
 * has threads and has closed our descriptor, stay where they are, and no peer's, until the program
 * ends: so many times.
 */
extern atomic_uint adopt_kept __attribute__((visibility("hidden")));
/* The program gives up what is in whole pages, of which some may be kept: they are zero now. */
void adopt_give_up(const struct urxe_extent *bytes);
/*
 * Pages that were returned while the program had other threads are mappings of an arena's file, in
 * which others' follow: so many times. Then one that begins at start must not grow to a length that
 * reaches those. Any thread, no lock; it allocates where the length is tens of MiB.
 */
extern atomic_uint adopt_divided __attribute__((visibility("hidden")));
bool adopt_may_grow(const void *start, uint64_t length);
/* A child has them, too, and then copies of its own (adopt_in_child). */
void adopt_before_fork(void);
void adopt_after_fork(void);

/*
 * The program takes memory away from its children: where, is not known; or it locks all that it
 * has. Any thread, no lock.
 */
void adopt_no_more(void);
/* Nothing is moved any more. */
void adopt_done(void);
/* In a forked child, before anything else: all is its own, and nothing is in the arena. */
void adopt_in_child(void);

#endif
