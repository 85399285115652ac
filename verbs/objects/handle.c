/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/handle.h"

#include <errno.h>
#include <stdlib.h>

#define HANDLES_MAX (1u << 24)

uint32_t handle_counts[OBJECT_TYPES];

struct handle_slot {
	struct object *object; /* NULL = free */
	uint32_t next_free;    /* index of the next free slot + 1; 0: this is the last one */
};

static int grow_table(struct handle_table *table)
{
	uint32_t size = table->size ? table->size * 2 : 64;
	struct handle_slot *slots;

	if (size > HANDLES_MAX)
		return -ENOMEM;
	slots = realloc(table->slots, size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = size; i-- > table->size;) {
		slots[i].object = NULL;
		slots[i].next_free = table->first_free;
		table->first_free = i + 1;
	}
	table->slots = slots;
	table->size = size;
	return 0;
}

/* 0, or -EINVAL: the process has the maximum of objects of the type. The kernel's rdma_rxe
 * (__rxe_add_to_pool) returns EINVAL then, too. */
static int check_count(const struct handle_table *table, enum object_type type)
{
	return table->counts[type] < table->max[type] ? 0 : -EINVAL;
}

static void put_object(struct handle_table *table, struct object *object)
{
	table->slots[object->handle - 1].object = object;
	table->counts[object->type]++;
}

/* Handles begin at 1: 0 is in structures of zeros, and must name no object. */
int handle_add(struct handle_table *table, struct object *object)
{
	int rc = check_count(table, object->type);

	if (rc)
		return rc;
	if (!table->first_free) {
		rc = grow_table(table);
		if (rc)
			return rc;
	}
	object->handle = table->first_free;
	table->first_free = table->slots[object->handle - 1].next_free;
	put_object(table, object);
	return 0;
}

int handle_place(struct handle_table *table, struct object *object)
{
	uint32_t handle = object->handle;
	int rc = check_count(table, object->type);

	if (!handle || handle > HANDLES_MAX)
		return -EEXIST;
	while (!rc && handle > table->size)
		rc = grow_table(table);
	if (rc)
		return rc;
	if (table->slots[handle - 1].object)
		return -EEXIST;
	put_object(table, object);
	return 0;
}

void handle_find_free(struct handle_table *table)
{
	table->first_free = 0;
	for (uint32_t i = table->size; i-- > 0;) {
		if (table->slots[i].object)
			continue;
		table->slots[i].next_free = table->first_free;
		table->first_free = i + 1;
	}
}

void handle_remove(struct handle_table *table, struct object *object)
{
	struct handle_slot *slot = &table->slots[object->handle - 1];

	slot->object = NULL;
	slot->next_free = table->first_free;
	table->first_free = object->handle;
	table->counts[object->type]--;
}

static struct object *object_at(const struct handle_table *table, uint32_t handle)
{
	return handle && handle <= table->size ? table->slots[handle - 1].object : NULL;
}

struct object *handle_find(const struct handle_table *table, enum object_type type, uint32_t handle)
{
	struct object *object = object_at(table, handle);

	return object && object->type == type ? object : NULL;
}

int handle_error(const struct handle_table *table, uint32_t handle)
{
	return object_at(table, handle) ? -EINVAL : -ENOENT;
}

struct object *handle_next(const struct handle_table *table, enum object_type type,
			   uint32_t *handle)
{
	while (*handle < table->size) {
		struct object *object = table->slots[(*handle)++].object;

		if (object && object->type == type)
			return object;
	}
	return NULL;
}

void handle_table_free(struct handle_table *table)
{
	free(table->slots);
	table->slots = NULL;
	table->size = table->first_free = 0;
}
