/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "util/id_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define IDMAP_LOG2_START 6

static int idmap_allocate(struct idmap *map, uint32_t log2_slots)
{
	struct idmap_slot *slots = calloc((size_t)1 << log2_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	*map = (struct idmap){
		.slots = slots,
		.mask = (1u << log2_slots) - 1,
		.shift = 32 - log2_slots,
	};
	return 0;
}

int idmap_init(struct idmap *map)
{
	return idmap_allocate(map, IDMAP_LOG2_START);
}

void idmap_free(struct idmap *map)
{
	free(map->slots);
	map->slots = NULL;
}

static void idmap_place(struct idmap *map, uint32_t id, void *object)
{
	uint32_t i = idmap_home(map, id);

	while (map->slots[i].object)
		i = (i + 1) & map->mask;
	map->slots[i] = (struct idmap_slot){.id = id, .object = object};
	map->used++;
}

static int idmap_grow(struct idmap *map)
{
	struct idmap bigger;
	int rc = idmap_allocate(&bigger, 32 - map->shift + 1);

	if (rc)
		return rc;
	for (uint32_t i = 0; i <= map->mask; i++) {
		if (map->slots[i].object)
			idmap_place(&bigger, map->slots[i].id, map->slots[i].object);
	}
	free(map->slots);
	*map = bigger;
	return 0;
}

int idmap_add(struct idmap *map, uint32_t id, void *object)
{
	int rc;

	if (idmap_find(map, id))
		return -EEXIST;
	if (map->used * 2 > map->mask) {
		rc = idmap_grow(map);
		if (rc)
			return rc;
	}
	idmap_place(map, id, object);
	return 0;
}

/* Moves later entries of the probe sequence back, so that no search for them ends at the free
 * slot. */
void idmap_remove(struct idmap *map, uint32_t id)
{
	uint32_t hole = idmap_home(map, id), i;

	while (map->slots[hole].id != id || !map->slots[hole].object) {
		if (!map->slots[hole].object)
			return;
		hole = (hole + 1) & map->mask;
	}
	for (i = (hole + 1) & map->mask; map->slots[i].object; i = (i + 1) & map->mask) {
		uint32_t home = idmap_home(map, map->slots[i].id);

		if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].object = NULL;
	map->used--;
}

void idmap_replace(struct idmap *map, uint32_t id, void *object)
{
	uint32_t i = idmap_home(map, id);

	while (map->slots[i].id != id || !map->slots[i].object)
		i = (i + 1) & map->mask;
	map->slots[i].object = object;
}

void *idmap_any(const struct idmap *map, uint32_t *at)
{
	for (; *at <= map->mask; ++*at) {
		if (map->slots[*at].object)
			return map->slots[*at].object;
	}
	return NULL;
}
