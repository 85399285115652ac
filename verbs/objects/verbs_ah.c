/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_ah.h"

#include <stdlib.h>

#include "objects/uverbs_file.h"
#include "objects/verbs_pd.h"

void ah_destroy(struct object *object)
{
	struct ah *ah = (struct ah *)object;

	ah->pd->object.users--;
	handle_remove(&object->file->handles, object);
	free(ah);
}
