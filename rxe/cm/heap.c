/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

int heap_reserve(struct heap *h, uint32_t n)
{
	uint32_t room = h->room ? h->room : 16;
	struct heap_node **nodes;

	if (n <= h->room)
		return 0;
	while (room < n)
		room *= 2;
	nodes = realloc(h->nodes, room * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	h->nodes = nodes;
	h->room = room;
	return 0;
}

void heap_free(struct heap *h)
{
	free(h->nodes);
	*h = (struct heap){0};
}

static void set_node(struct heap *h, struct heap_node *node, uint32_t i)
{
	h->nodes[i] = node;
	node->at = i + 1;
}

/* Moves the node from position i up or down to its place. */
static void sift_node(struct heap *h, struct heap_node *node, uint32_t i)
{
	uint32_t child;

	while (i && h->nodes[(i - 1) / 2]->due > node->due) {
		set_node(h, h->nodes[(i - 1) / 2], i);
		i = (i - 1) / 2;
	}
	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && h->nodes[child + 1]->due < h->nodes[child]->due)
			child++;
		if (h->nodes[child]->due >= node->due)
			break;
		set_node(h, h->nodes[child], i);
		i = child;
	}
	set_node(h, node, i);
}

void heap_set(struct heap *h, struct heap_node *node, uint64_t due)
{
	node->due = due;
	if (!node->at)
		set_node(h, node, h->n++);
	sift_node(h, node, node->at - 1);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
	uint32_t i = node->at;
	struct heap_node *last;

	if (!i)
		return;
	node->at = 0;
	last = h->nodes[--h->n];
	if (last != node)
		sift_node(h, last, i - 1);
}
