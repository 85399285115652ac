/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. */
#ifndef URXE_VERBS_MEMORY_MR_H
#define URXE_VERBS_MEMORY_MR_H

#include <sys/queue.h>

#include "uverbs/handle.h"

struct pd;
struct urxe_extent;
struct urxe_mr;

LIST_HEAD(mr_list, mr);

struct mr {
	struct object object;
	struct pd *pd;
	uint64_t start, length; /* the memory's, as the program has it */
	struct urxe_mr *mr;
	uint64_t number; /* of the registration: those of the port count up */
	LIST_ENTRY(mr) released_link;
};

void mr_destroy(struct object *object);
/* No peer copies to or from memory of released regions any more. */
void mr_settled(void);
/* Those bytes of the program's memory are the region's no longer, unless urxe_mr_unmapped says so.
 */
void mr_unmap(struct mr *mr, const struct urxe_extent *bytes);

#endif
