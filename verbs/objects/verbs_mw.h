/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows, for uverbs/ and checkpoint/. */
#ifndef URXE_VERBS_OBJECTS_VERBS_MW_H
#define URXE_VERBS_OBJECTS_VERBS_MW_H

#include "objects/handle.h"

struct pd;
struct urxe_mw;

struct mw {
	struct object object;
	struct pd *pd;
	struct urxe_mw *mw;
};

void mw_destroy(struct object *object);

#endif
