/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pairs of nodes in known states, each of them the same in every run: for tests of saved devices,
 * for their fixtures, and for the corpus of fuzz_state.
 */
#ifndef URXE_TEST_SCENE_H
#define URXE_TEST_SCENE_H

#include "pair.h"

#define SCENE_QPS 8

struct scene {
	const char *name;
	/* Builds the state. */
	void (*build)(struct scene *scene);
	unsigned side;  /* the node that is in an interesting state */
	unsigned since; /* the first version of streams that have the state; 0 = the first of all */
	struct pair *pair;
	/* Connection i is between end[i][0] and end[i][1]. */
	struct endpoint end[SCENE_QPS][2];
	struct conn_attr conn[SCENE_QPS];
	uint32_t n; /* connections */
	struct urxe_rq *srq;
	struct node_queue srq_queue;
	struct urxe_mw *mw[2];
	struct urxe_fast_mr *fast;
};

/* Scene i, built; NULL: there are no more. scene_close frees it. */
struct scene *scene_open(unsigned i);
void scene_close(struct scene *scene);
/* Moves the node of a side to another engine. */
void scene_move(struct scene *scene, unsigned side);
/* Saves the device of a side. */
void scene_save(struct scene *scene, unsigned side, uint8_t **stream, size_t *length);

#endif
