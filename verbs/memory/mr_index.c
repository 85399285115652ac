/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/mr_index.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define PAGE_BITS  12 /* log2 of the smallest page size; a larger page counts as several */
#define LEVEL_BITS 9
#define LEVELS     5 /* for addresses of 57 bits, the most that processors translate */
#define SLOTS      (1u << LEVEL_BITS)
#define PAGES      (UINT64_C(1) << (LEVELS * LEVEL_BITS))

/* A node of the tree. Nodes stay allocated, because readers have no lock; only a forked child,
 * which has one thread, frees them. */
struct node {
	atomic_uint whole[SLOTS]; /* regions that cover all of the slot's pages */
	/* Nodes of level 0 lack this part: their slots are single pages. */
	struct {
		atomic_uint part; /* regions that cover some of the slot's pages */
		_Atomic(struct node *) node;
	} below[];
};

/* The pages with the numbers first to last (address >> PAGE_BITS). */
struct range {
	uint64_t first, last;
};

atomic_uint mr_index_regions;
static _Atomic(struct node *) root;

static struct node *make_node(unsigned int level)
{
	size_t below = level ? SLOTS * sizeof(((struct node *)0)->below[0]) : 0;

	return calloc(1, sizeof(struct node) + below);
}

/* --- One level: a slot has 2^shift_of(level) pages. */

static unsigned int shift_of(unsigned int level)
{
	return level * LEVEL_BITS;
}

static unsigned int slot_of(unsigned int level, uint64_t page)
{
	return (unsigned int)(page >> shift_of(level)) & (SLOTS - 1);
}

/* The part of the range that lies in the slot of its first page. */
static struct range in_slot(unsigned int level, const struct range *range)
{
	uint64_t last = range->first | ((UINT64_C(1) << shift_of(level)) - 1);

	return (struct range){range->first, last < range->last ? last : range->last};
}

static bool fills_slot(unsigned int level, const struct range *part)
{
	return part->last - part->first + 1 == UINT64_C(1) << shift_of(level);
}

/* Creates the nodes below all slots that the range fills in part, so that count_regions() needs no
 * memory. False: no memory. */
static bool make_nodes(_Atomic(struct node *) *at, unsigned int level, struct range range)
{
	struct node *node = atomic_load(at);

	if (!node) {
		node = make_node(level);
		if (!node)
			return false;
		atomic_store_explicit(at, node, memory_order_release);
	}
	while (range.first <= range.last) {
		struct range part = in_slot(level, &range);

		if (!fills_slot(level, &part) &&
		    !make_nodes(&node->below[slot_of(level, part.first)].node, level - 1, part))
			return false;
		range.first = part.last + 1;
	}
	return true;
}

static void count_regions(struct node *node, unsigned int level, struct range range,
			  unsigned int by)
{
	while (range.first <= range.last) {
		struct range part = in_slot(level, &range);
		unsigned int slot = slot_of(level, part.first);

		if (fills_slot(level, &part)) {
			atomic_fetch_add(&node->whole[slot], by);
		} else {
			atomic_fetch_add(&node->below[slot].part, by);
			count_regions(atomic_load(&node->below[slot].node), level - 1, part, by);
		}
		range.first = part.last + 1;
	}
}

static bool node_overlaps(struct node *node, unsigned int level, struct range range)
{
	while (range.first <= range.last) {
		struct range part = in_slot(level, &range);
		unsigned int slot = slot_of(level, part.first);

		if (atomic_load(&node->whole[slot]))
			return true;
		if (level && atomic_load(&node->below[slot].part) &&
		    (fills_slot(level, &part) ||
		     node_overlaps(atomic_load(&node->below[slot].node), level - 1, part)))
			return true;
		range.first = part.last + 1;
	}
	return false;
}

/* --- The whole tree. */

static struct range page_range(uint64_t start, uint64_t length)
{
	struct range range = {start >> PAGE_BITS, (start + (length - 1)) >> PAGE_BITS};

	if (range.last < range.first || range.last >= PAGES)
		range.last = PAGES - 1;
	return range;
}

int mr_index_add(uint64_t start, uint64_t length)
{
	struct range range = page_range(start, length);

	if (!make_nodes(&root, LEVELS - 1, range))
		return -ENOMEM;
	count_regions(atomic_load(&root), LEVELS - 1, range, 1);
	atomic_fetch_add(&mr_index_regions, 1);
	return 0;
}

void mr_index_remove(uint64_t start, uint64_t length)
{
	atomic_fetch_sub(&mr_index_regions, 1);
	count_regions(atomic_load(&root), LEVELS - 1, page_range(start, length), -1u);
}

bool mr_index_overlaps(uint64_t start, uint64_t length)
{
	struct node *node = atomic_load_explicit(&root, memory_order_acquire);

	return length && node && node_overlaps(node, LEVELS - 1, page_range(start, length));
}

static void free_nodes(struct node *node, unsigned int level)
{
	for (unsigned int slot = 0; node && level && slot < SLOTS; slot++)
		free_nodes(atomic_load(&node->below[slot].node), level - 1);
	free(node);
}

void mr_index_forget(void)
{
	atomic_store(&mr_index_regions, 0);
	free_nodes(atomic_exchange(&root, NULL), LEVELS - 1);
}
