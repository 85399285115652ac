/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "handle_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE        UINT32_MAX
#define FIRST_SLOTS 64u

void pv_handles_init(struct pv_handle_table *table, uint32_t first, uint32_t limit)
{
	*table = (struct pv_handle_table){
		.first = first, .limit = limit, .fresh = first, .oldest = NONE, .newest = NONE};
}

void pv_handles_free(struct pv_handle_table *table)
{
	free(table->slots);
	pv_handles_init(table, table->first, table->limit);
}

static int grow_handles(struct pv_handle_table *table)
{
	uint32_t room = table->room ? 2 * table->room : FIRST_SLOTS;
	struct pv_handle_slot *slots;

	if (room > table->limit)
		room = table->limit;
	slots = realloc(table->slots, room * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + table->room, 0, (room - table->room) * sizeof(*slots));
	table->slots = slots;
	table->room = room;
	return 0;
}

/* Takes a handle that was never used while there is one, then the one freed longest ago. 0, -ENOSPC
 * or -ENOMEM. */
static int take_handle(struct pv_handle_table *table, uint32_t *handle)
{
	if (table->fresh < table->limit) {
		int rc = table->fresh < table->room ? 0 : grow_handles(table);

		if (!rc)
			*handle = table->fresh++;
		return rc;
	}
	if (table->oldest == NONE)
		return -ENOSPC;
	*handle = table->oldest;
	table->oldest = table->slots[*handle].next_free;
	if (table->oldest == NONE)
		table->newest = NONE;
	return 0;
}

int pv_handles_add(struct pv_handle_table *table, void *object, uint32_t *handle)
{
	int rc = take_handle(table, handle);

	if (rc)
		return rc;
	table->slots[*handle].object = object;
	table->used++;
	return 0;
}

void pv_handles_remove(struct pv_handle_table *table, uint32_t handle)
{
	table->slots[handle] = (struct pv_handle_slot){.next_free = NONE};
	table->used--;
	if (table->newest == NONE)
		table->oldest = handle;
	else
		table->slots[table->newest].next_free = handle;
	table->newest = handle;
}

void *pv_handles_find(const struct pv_handle_table *table, uint32_t handle)
{
	return handle < table->fresh && handle >= table->first ? table->slots[handle].object : NULL;
}

void *pv_handles_next(const struct pv_handle_table *table, uint32_t *at)
{
	if (*at < table->first)
		*at = table->first;
	while (*at < table->fresh) {
		void *object = table->slots[(*at)++].object;

		if (object)
			return object;
	}
	return NULL;
}

/* --- Restoring */

#define UNPLACED (UINT32_MAX - 1) /* next_free of a handle that is neither used nor free yet */

int pv_handles_restore(struct pv_handle_table *table, uint32_t fresh)
{
	while (table->room < fresh)
		if (grow_handles(table))
			return -ENOMEM;
	for (uint32_t i = table->first; i < fresh; i++)
		table->slots[i].next_free = UNPLACED;
	table->fresh = fresh;
	return 0;
}

static bool is_unplaced(const struct pv_handle_table *table, uint32_t handle)
{
	return handle >= table->first && handle < table->fresh &&
	       table->slots[handle].next_free == UNPLACED;
}

int pv_handles_place(struct pv_handle_table *table, void *object, uint32_t handle)
{
	if (!is_unplaced(table, handle))
		return -EBADMSG;
	table->slots[handle] = (struct pv_handle_slot){.object = object};
	table->used++;
	return 0;
}

bool pv_handles_place_free(struct pv_handle_table *table, uint32_t handle)
{
	if (!is_unplaced(table, handle))
		return false;
	table->used++;
	pv_handles_remove(table, handle);
	return true;
}
