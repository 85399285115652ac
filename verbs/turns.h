/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs that have many queue pairs post to them in much the same turn again and again. Nothing
 * of one whose turn comes after thousands of others is in the caches, and a post waits for one line
 * after another: so that of those whose turns are next is fetched while others have theirs.
 */
#ifndef URXE_VERBS_TURNS_H
#define URXE_VERBS_TURNS_H

#include <stdint.h>

/* Turns that a queue pair is fetched ahead of its own. */
#define TURNS_AHEAD 5

struct handle_table;
struct qp;

/* Of a context. Zeroed at the start. */
struct turns {
	uint32_t posted[TURNS_AHEAD]; /* handles of the queue pairs that had the last turns */
	uint32_t coming[TURNS_AHEAD]; /* and of those that are expected to have the next ones */
	uint32_t n;                   /* free-running */
	uint32_t posts;               /* of this turn, behind the first */
};

/* It is that queue pair's turn; several posts to one in a row are one turn. */
void turns_take(struct turns *turns, const struct handle_table *handles, struct qp *qp);

#endif
