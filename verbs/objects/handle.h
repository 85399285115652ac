/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The objects of a context by their 32-bit handles of the uverbs ABI. */
#ifndef URXE_VERBS_OBJECTS_HANDLE_H
#define URXE_VERBS_OBJECTS_HANDLE_H

#include <stdint.h>

enum object_type {
	OBJECT_PD = 1,
	OBJECT_MR,
	OBJECT_MW,
	OBJECT_CQ,
	OBJECT_SRQ,
	OBJECT_QP,
	OBJECT_AH,
	OBJECT_TYPES
};

struct uverbs_file;

/* Number of objects of all contexts of the process, by enum object_type. Under adapter.lock. */
extern uint32_t handle_counts[OBJECT_TYPES];

/* The first member of every object. */
struct object {
	enum object_type type;
	uint32_t handle;
	uint32_t users; /* number of objects that refer to it, and of commands that have released
			   adapter.lock while they use it */
	uint64_t user_handle;     /* the program's name for the object in events */
	struct uverbs_file *file; /* its context */
};

struct handle_table {
	struct handle_slot *slots;
	uint32_t size;
	uint32_t first_free; /* index of the first free slot + 1; 0 = none */
	/* By enum object_type: */
	uint32_t *counts;    /* numbers of objects that the device has: handle_counts */
	const uint32_t *max; /* numbers of objects that the device may have */
};

/*
 * Gives the object a handle, never 0. Returns 0. -EINVAL: the process has the maximum of objects of
 * the type. -ENOMEM: no memory, or the context has 2^24 handles.
 */
int handle_add(struct handle_table *table, struct object *object);
/*
 * For restored objects: gives the object the handle object->handle. Returns 0. -EEXIST: another
 * object has the handle, or the number cannot be a handle. -EINVAL and -ENOMEM as handle_add.
 * handle_find_free makes the list of free handles, which handle_place does not keep: the caller
 * calls it once after the last handle_place of a table, and before its first handle_add.
 */
int handle_place(struct handle_table *table, struct object *object);
void handle_find_free(struct handle_table *table);
void handle_remove(struct handle_table *table, struct object *object);
/* The object of that type and handle. NULL: the handle names no object, or an object of another
 * type. */
struct object *handle_find(const struct handle_table *table, enum object_type type,
			   uint32_t handle);
/*
 * The kernel's errno value after handle_find has returned NULL: -ENOENT if the handle names no
 * object, -EINVAL if the object has another type.
 */
int handle_error(const struct handle_table *table, uint32_t handle);
/* Returns the first object of the type whose handle is larger than *handle, and sets *handle to its
 * handle. Begin with 0. NULL: no further object. */
struct object *handle_next(const struct handle_table *table, enum object_type type,
			   uint32_t *handle);
void handle_table_free(struct handle_table *table);

#endif
