/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles, for uverbs/ and the send requests of UD queue pairs (queues/). */
#ifndef URXE_VERBS_OBJECTS_VERBS_AH_H
#define URXE_VERBS_OBJECTS_VERBS_AH_H

#include <rxe/types.h>

#include "objects/handle.h"

struct pd;

struct ah {
	struct object object;
	struct pd *pd;
	struct urxe_path path;
};

void ah_destroy(struct object *object);

#endif
