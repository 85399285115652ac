/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tables from handles to objects. A freed handle is used again after all other free ones. */
#ifndef URXE_PVRDMA_HANDLE_TABLE_H
#define URXE_PVRDMA_HANDLE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct pv_handle_slot {
	void *object;       /* NULL: free */
	uint32_t next_free; /* of a free slot: the handle to be used after it */
};

struct pv_handle_table {
	struct pv_handle_slot *slots;
	uint32_t first;  /* the lowest handle */
	uint32_t limit;  /* the highest handle + 1 */
	uint32_t room;   /* number of allocated slots */
	uint32_t fresh;  /* this handle and higher ones were never used */
	uint32_t oldest; /* the handle that was freed first; UINT32_MAX: none is free */
	uint32_t newest; /* the handle that was freed last; UINT32_MAX: none is free */
	uint32_t used;   /* number of handles with an object */
};

void pv_handles_init(struct pv_handle_table *table, uint32_t first, uint32_t limit);
/* Frees the slots, not the objects. The table is empty then. */
void pv_handles_free(struct pv_handle_table *table);
/* Gives the object a handle. 0; -ENOSPC: all handles are in use; -ENOMEM. */
int pv_handles_add(struct pv_handle_table *table, void *object, uint32_t *handle);
void pv_handles_remove(struct pv_handle_table *table, uint32_t handle);
/* The object that has the handle; NULL: there is none. */
void *pv_handles_find(const struct pv_handle_table *table, uint32_t handle);
/* Iterates over the objects: *at starts at 0; NULL at the end. */
void *pv_handles_next(const struct pv_handle_table *table, uint32_t *at);

/* Begins to restore an empty table: `fresh` and higher handles were never used. 0, -ENOMEM. For
 * each lower handle pv_handles_place or pv_handles_place_free follows. */
int pv_handles_restore(struct pv_handle_table *table, uint32_t fresh);
/* Gives an object this handle. 0, or -EBADMSG: the handle is not below `fresh`, has an object, or
 * is marked as freed. */
int pv_handles_place(struct pv_handle_table *table, void *object, uint32_t handle);
/* Marks the handle as freed after all others. False: it is not below `fresh`, has an object, or is
 * marked already. */
bool pv_handles_place_free(struct pv_handle_table *table, uint32_t handle);

#endif
