/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "work_id.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* An id has 31 bits: the entry's index, and its generation above. */
#define INDEX_BITS  20
#define INDEX_MASK  ((1u << INDEX_BITS) - 1)
#define GENERATIONS (1u << (31 - INDEX_BITS))

#define FIRST_ROOM 64u

#define SLOT_USED UINT32_MAX

static int grow_entries(struct work_ids *ids)
{
	uint32_t room = ids->room ? 2 * ids->room : FIRST_ROOM;
	struct work_queue_entry *entries;

	if (ids->n < ids->room)
		return 0;
	if (room > INDEX_MASK + 1)
		return -ENOMEM;
	entries = realloc(ids->entries, room * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	ids->entries = entries;
	ids->room = room;
	return 0;
}

static bool has_free(const struct work_ids *ids)
{
	return ids->free < ids->n;
}

/* Sets *index to the free entry that was freed first, so that an id recurs as late as possible; if
 * none is free, to a new one. 0 or -ENOMEM. */
static int take_entry(struct work_ids *ids, uint32_t *index)
{
	int rc;

	if (has_free(ids)) {
		*index = ids->free;
		ids->free = ids->entries[*index].next;
		return 0;
	}
	rc = grow_entries(ids);
	if (rc)
		return rc;
	*index = ids->n++;
	ids->entries[*index] = (struct work_queue_entry){0};
	ids->free = UINT32_MAX;
	return 0;
}

int work_ids_add(struct work_ids *ids, void *queue, bool shared, uint32_t *id)
{
	struct work_queue_entry *entry;
	uint32_t index;
	int rc;

	if (!ids->n)
		ids->free = UINT32_MAX;
	rc = take_entry(ids, &index);
	if (rc)
		return rc;
	entry = &ids->entries[index];
	entry->queue = queue;
	entry->shared = shared;
	*id = (uint32_t)entry->generation << INDEX_BITS | index;
	return 0;
}

static struct work_queue_entry *find_queue_entry(const struct work_ids *ids, uint32_t id)
{
	uint32_t index = id & INDEX_MASK;
	struct work_queue_entry *entry;

	if (index >= ids->n)
		return NULL;
	entry = &ids->entries[index];
	return entry->queue && entry->generation == id >> INDEX_BITS ? entry : NULL;
}

void work_ids_remove(struct work_ids *ids, uint32_t id)
{
	struct work_queue_entry *entry = find_queue_entry(ids, id);
	uint32_t index = id & INDEX_MASK;

	if (!entry)
		return;
	entry->queue = NULL;
	entry->generation = (uint16_t)((entry->generation + 1) % GENERATIONS);
	entry->next = UINT32_MAX;
	if (has_free(ids))
		ids->entries[ids->last_free].next = index;
	else
		ids->free = index;
	ids->last_free = index;
}

void *work_ids_find(const struct work_ids *ids, uint32_t id, bool *shared)
{
	const struct work_queue_entry *entry = find_queue_entry(ids, id);

	if (!entry)
		return NULL;
	*shared = entry->shared;
	return entry->queue;
}

void work_ids_free(struct work_ids *ids)
{
	free(ids->entries);
	*ids = (struct work_ids){0};
}

/* --- Slots. */

static void link_free(struct work_slots *slots, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		slots->next[i] = i + 1;
}

int work_slots_init(struct work_slots *slots, uint32_t n)
{
	*slots = (struct work_slots){0};
	return n ? work_slots_grow(slots, n) : 0;
}

int work_slots_grow(struct work_slots *slots, uint32_t n)
{
	uint64_t *wr_ids;
	uint32_t *next, end = slots->n;

	if (n <= slots->n)
		return 0;
	wr_ids = realloc(slots->wr_ids, n * sizeof(*wr_ids));
	if (!wr_ids)
		return -ENOMEM;
	slots->wr_ids = wr_ids;
	next = realloc(slots->next, n * sizeof(*next));
	if (!next)
		return -ENOMEM;
	slots->next = next;
	/* The list of free slots ends at the old n, which is the first new slot. */
	link_free(slots, end, n);
	slots->n = n;
	return 0;
}

void work_slots_free(struct work_slots *slots)
{
	free(slots->wr_ids);
	free(slots->next);
	*slots = (struct work_slots){0};
}

void work_slots_clear(struct work_slots *slots)
{
	link_free(slots, 0, slots->n);
	slots->free = 0;
	slots->used = 0;
}

bool work_slots_take(struct work_slots *slots, uint64_t wr_id, uint32_t *slot)
{
	if (slots->free >= slots->n)
		return false;
	*slot = slots->free;
	slots->free = slots->next[*slot];
	slots->next[*slot] = SLOT_USED;
	slots->wr_ids[*slot] = wr_id;
	slots->used++;
	return true;
}

bool work_slots_return(struct work_slots *slots, uint32_t slot, uint64_t *wr_id)
{
	if (slot >= slots->n || slots->next[slot] != SLOT_USED)
		return false;
	*wr_id = slots->wr_ids[slot];
	slots->next[slot] = slots->free;
	slots->free = slot;
	slots->used--;
	return true;
}
