/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_pd.h"

#include <stdlib.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "objects/uverbs_file.h"

void pd_destroy(struct object *object)
{
	if (adapter.hca.hca)
		hca_pd_end(adapter.hca.hca, ((struct pd *)object)->number);
	handle_remove(&object->file->handles, object);
	free(object);
}
