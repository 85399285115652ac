/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains, for uverbs/ and the objects in them. */
#ifndef URXE_VERBS_OBJECTS_VERBS_PD_H
#define URXE_VERBS_OBJECTS_VERBS_PD_H

#include "objects/handle.h"

struct pd {
	struct object object;
	uint32_t number; /* number of the PD in the engine, unique in the process */
};

/* Returns a number for a new PD: one that no PD has had, or, when all are used up, one that no PD
 * has. */
uint32_t pd_new_number(void);
void pd_destroy(struct object *object);

#endif
