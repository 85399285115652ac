/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wr_id values of work requests at the HCA. In a completion with an error only wr_id, status,
 * vendor error and QPN are valid. These tell neither a send from a receive, nor the shared receive
 * queue. So wr_id has these fields:
 *
 *   bit 63         1 = a receive request
 *   bits 32 to 62  id of the queue pair or shared receive queue (work_ids)
 *   bits 0 to 31   of a receive: the slot that keeps the program's wr_id (work_slots); else 0
 *
 * The send requests of a queue pair complete in order, so they need no slot. A queue pair gets a
 * new id when it is reset. So work_ids_find() finds no queue for a completion whose queue was
 * destroyed or reset, and the caller drops the completion. But a receive of a shared receive queue
 * has the id of that queue, so hca_qp.c passes all completions before a queue pair with such a
 * queue goes to INIT.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_WORK_ID_H
#define URXE_VERBS_HCA_OBJECTS_WORK_ID_H

#include <stdbool.h>
#include <stdint.h>

/* The queue pairs and shared receive queues of an HCA, by id. All 0 at first. */
struct work_ids {
	struct work_queue_entry *entries;
	uint32_t n;         /* entries, used or free */
	uint32_t room;      /* entries allocated */
	uint32_t free;      /* index of the first free entry; n or more: none is free */
	uint32_t last_free; /* index of the last free entry */
};

struct work_queue_entry {
	void *queue;         /* NULL: free */
	uint32_t next;       /* of a free entry: index of the next free one; UINT32_MAX: none */
	uint16_t generation; /* 11 bits; changes when a queue leaves the entry */
	bool shared;         /* a shared receive queue */
};

/*
 * Gives the queue an id of 31 bits: index of its entry (20 bits), and generation of the entry
 * above. `shared`: it is a shared receive queue. 0, or -ENOMEM, also if all entries are in use.
 */
int work_ids_add(struct work_ids *ids, void *queue, bool shared, uint32_t *id);
void work_ids_remove(struct work_ids *ids, uint32_t id);
/* Returns the queue of that id, and sets *shared. NULL: no queue has that id. */
void *work_ids_find(const struct work_ids *ids, uint32_t id, bool *shared);
void work_ids_free(struct work_ids *ids);

#define WORK_ID_RECV (UINT64_C(1) << 63)

static inline uint64_t work_id_of_send(uint32_t id)
{
	return (uint64_t)id << 32;
}

static inline uint64_t work_id_of_recv(uint32_t id, uint32_t slot)
{
	return WORK_ID_RECV | (uint64_t)id << 32 | slot;
}

static inline uint32_t work_id_queue(uint64_t work_id)
{
	return (uint32_t)((work_id & ~WORK_ID_RECV) >> 32);
}

/* The program's wr_id of each receive request that the HCA has. */
struct work_slots {
	uint64_t *wr_ids;
	uint32_t *next; /* of a free slot: the next free one; of a used one: UINT32_MAX */
	uint32_t n;     /* slots, used and free */
	uint32_t used;  /* slots in use */
	uint32_t free;  /* the first free slot; n: none */
};

/* Makes n free slots. 0 or -ENOMEM; the caller calls work_slots_free() also after an error. */
int work_slots_init(struct work_slots *slots, uint32_t n);
/* Makes room for n slots; used slots stay. 0 or -ENOMEM. */
int work_slots_grow(struct work_slots *slots, uint32_t n);
void work_slots_free(struct work_slots *slots);
/* Frees all slots: the queue has no requests any more. */
void work_slots_clear(struct work_slots *slots);
/* Takes a free slot for the request, and sets *slot. False: all slots are in use. */
bool work_slots_take(struct work_slots *slots, uint64_t wr_id, uint32_t *slot);
/* Frees the slot and sets *wr_id. False: no such slot is in use. */
bool work_slots_return(struct work_slots *slots, uint32_t slot, uint64_t *wr_id);

#endif
