/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions. */
#ifndef URXE_VERBS_MR_H
#define URXE_VERBS_MR_H

#include "handle.h"

struct pd;
struct urxe_mr;

struct mr {
	struct object object;
	struct pd *pd;
	uint64_t start; /* the memory's address, as the program has it */
	struct urxe_mr *mr;
};

void mr_destroy(struct object *object);

#endif
