/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. For cmd_mr.c and mmu_notifier.c. */
#ifndef URXE_VERBS_MEMORY_MR_H
#define URXE_VERBS_MEMORY_MR_H

#include <stdbool.h>
#include <sys/queue.h>

#include "uverbs/handle.h"

struct pd;
struct urxe_extent;
struct urxe_mr;

LIST_HEAD(mr_list, mr);

struct mr {
	struct object object;
	struct pd *pd;
	uint64_t start, length; /* the program's addresses */
	bool on_demand; /* accesses find what is mapped then: not in the index of mr_index.h */
	struct urxe_mr *mr;
	uint64_t registration; /* number of the registration, counted by the port */
	LIST_ENTRY(mr) released_link;
};

/*
 * Counts a region among those of the process, and adds its pages to the index of mr_index.h unless
 * it is on-demand. 0 or -ENOMEM. With port.lock, as mr_uncount.
 */
int mr_count(const struct mr *mr);
void mr_uncount(const struct mr *mr);
void mr_destroy(struct object *object);
/* Frees all released regions, once no peer copies to or from their memory any more. */
void mr_free_released(void);
/* Withdraws the bytes from the region, until urxe_mr_unmapped() decides for good. */
void mr_unmap(struct mr *mr, const struct urxe_extent *bytes);

#endif
