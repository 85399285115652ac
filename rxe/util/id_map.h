/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Map from a 32-bit number (QPN, key) to an object: a hash table with linear probing. The caller
 * chooses the numbers.
 */
#ifndef URXE_UTIL_ID_MAP_H
#define URXE_UTIL_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
	void *object; /* NULL: free */
	uint32_t id;
};

struct idmap {
	struct idmap_slot *slots;
	uint32_t mask; /* slots - 1 */
	uint32_t used;
	uint32_t shift; /* 32 - log2(slots) */
};

int idmap_init(struct idmap *map);
void idmap_free(struct idmap *map);
/* Adds an object under the number. -EEXIST: the number is taken; -ENOMEM. */
int idmap_add(struct idmap *map, uint32_t id, void *object);
void idmap_remove(struct idmap *map, uint32_t id);
/* Stores `object` in place of the object that the map has for `id`. The map must have one. */
void idmap_replace(struct idmap *map, uint32_t id, void *object);
/*
 * To empty a map: returns any object, which the caller removes before the next call; NULL if the
 * map is empty. *at is 0 at first. Slots before *at stay free, because a removal fills its slot
 * only from slots behind it.
 */
void *idmap_any(const struct idmap *map, uint32_t *at);

/* Iterates over the map: *at starts at 0; NULL at the end. */
static inline void *idmap_next(const struct idmap *map, uint32_t *at)
{
	while (*at <= map->mask) {
		void *object = map->slots[(*at)++].object;

		if (object)
			return object;
	}
	return NULL;
}

/* The first slot to look at. Fibonacci hashing spreads consecutive numbers. */
static inline uint32_t idmap_home(const struct idmap *map, uint32_t id)
{
	return id * 0x9e3779b9u >> map->shift;
}

static inline void *idmap_find(const struct idmap *map, uint32_t id)
{
	uint32_t i = idmap_home(map, id);

	while (map->slots[i].object && map->slots[i].id != id)
		i = (i + 1) & map->mask;
	return map->slots[i].object;
}

#endif
