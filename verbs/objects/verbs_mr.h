/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. Functions need adapter.lock. */
#ifndef URXE_VERBS_OBJECTS_VERBS_MR_H
#define URXE_VERBS_OBJECTS_VERBS_MR_H

#include <stdbool.h>
#include <sys/queue.h>

#include "objects/handle.h"

struct pd;
struct urxe_extent;
struct urxe_mr;

struct mr {
	struct object object;
	struct pd *pd;
	uint64_t start, length; /* the program's addresses */
	bool on_demand; /* accesses find what is mapped then: not in the index of mr_index.h */
	struct urxe_mr *mr;
	uint64_t registration; /* number of the registration, counted by the adapter */
	LIST_ENTRY(mr) released_link;
};

/*
 * Counts a region among those of the process, and adds its pages to the index of mr_index.h unless
 * it is on-demand. 0 or -ENOMEM.
 */
int mr_count(const struct mr *mr);
void mr_uncount(const struct mr *mr);
/* Deregisters the region and frees it. -EBUSY: a memory window is bound to it. */
int mr_dereg(struct mr *mr);
void mr_destroy(struct object *object);
/*
 * Frees a region that has no handle any more, at once or later: while peers still copy to or from
 * it, its memory counts as registered.
 */
void mr_release(struct mr *mr);
/* Frees all released regions, once no peer copies to or from their memory any more. */
void mr_free_released(void);
/* Withdraws the bytes from the region, until urxe_mr_unmapped() decides for good. */
void mr_unmap(struct mr *mr, const struct urxe_extent *bytes);

#endif
