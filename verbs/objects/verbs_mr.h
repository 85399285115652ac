/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. Functions need adapter.lock. */
#ifndef URXE_VERBS_OBJECTS_VERBS_MR_H
#define URXE_VERBS_OBJECTS_VERBS_MR_H

#include <stdbool.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "objects/handle.h"

/* Access flags that have no effect in urxe. They are ignored for regions, windows and queue pairs,
 * because programs give all three the same flags. */
#define HARMLESS_ACCESS (IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

struct pd;
struct urxe_extent;
struct urxe_mr;

struct mr {
	struct object object;
	struct pd *pd;
	uint64_t start, length; /* the program's addresses */
	/* An access uses the memory that is mapped at that moment. So the region is not in the
	 * index of mr_index.h, and calls that unmap its memory leave it as it is. */
	bool on_demand;
	bool was_whole; /* during a restoration: `whole` of struct mr_record */
	struct urxe_mr *mr;
	/* adapter.registrations at the registration; 0: the region is being restored, before
	 * mr_count. */
	uint64_t registration;
	LIST_ENTRY(mr) released_link;
};

/* Counts a region among those of the process: adds its pages to the index of mr_index.h, or, if the
 * region is on-demand, counts it in adapter.on_demand_mrs. 0 or -ENOMEM. */
int mr_count(const struct mr *mr);
void mr_uncount(const struct mr *mr);
/* Deregisters the region, and frees it as mr_release does. 0, or -EBUSY: a memory window is bound
 * to the region. */
int mr_dereg(struct mr *mr);
void mr_destroy(struct object *object);
/*
 * Frees a deregistered region without a handle. While peers may still copy to or from its memory,
 * adds it to adapter.released_mrs instead: until mr_free_released() the memory counts as
 * registered.
 */
void mr_release(struct mr *mr);
/* Frees all of adapter.released_mrs. Only when no peer copies to or from their memory any more. */
void mr_free_released(void);
/* Withdraws the bytes from the region, until urxe_mr_unmapped() makes that final or undoes it. If
 * there is no memory to note the range, withdraws the whole region for good. */
void mr_unmap(struct mr *mr, const struct urxe_extent *bytes);

#endif
