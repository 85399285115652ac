/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Moves a node to another engine and other memory, by the saved state of its device. */
#ifndef URXE_TEST_MOVE_H
#define URXE_TEST_MOVE_H

#include <rxe/state.h>

#include "pair.h"

/* Saves the device; completions that are not polled go with it. The caller frees the stream. */
void move_save(struct node *node, uint64_t now, uint8_t **stream, size_t *length);
/*
 * Restores the device; `restored` learns of each object, and may be NULL. An error: the node has no
 * device.
 */
int move_restore(struct node *node, uint64_t now, const uint8_t *stream, size_t length,
		 void (*restored)(void *arg, const struct urxe_state_object *object), void *arg);
/* All of that for a side of a pair whose endpoints are those of these n connections. */
void move_node(struct pair *pair, unsigned side, struct endpoint *const end[], uint32_t n);

/* urxe_state_save.completion for the CQs of a node. */
bool move_completion(void *arg, void *cq_ctx, uint32_t i, struct urxe_wc *wc);

#endif
