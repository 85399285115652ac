/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/pd.h"

#include <stdlib.h>

#include "objects/uverbs_file.h"

void pd_destroy(struct object *object)
{
	handle_remove(&object->file->handles, object);
	free(object);
}
