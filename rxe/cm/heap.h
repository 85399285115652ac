/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A binary heap of deadlines, the earliest first. Nodes store their position. */
#ifndef URXE_CM_HEAP_H
#define URXE_CM_HEAP_H

#include <stdint.h>

struct heap_node {
	uint64_t due;
	uint32_t at; /* position + 1; 0 = not in the heap */
};

struct heap {
	struct heap_node **nodes;
	uint32_t n, room;
};

/* Makes room for n nodes. 0 or -ENOMEM. */
int heap_reserve(struct heap *h, uint32_t n);
void heap_free(struct heap *h);
/* Adds a node, or moves it; heap_reserve has made room. */
void heap_set(struct heap *h, struct heap_node *node, uint64_t due);
/* Removes a node, if it is in the heap. */
void heap_remove(struct heap *h, struct heap_node *node);

/* The earliest node; NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *h)
{
	return h->n ? h->nodes[0] : 0;
}

#endif
