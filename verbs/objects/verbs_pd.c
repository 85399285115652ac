/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_pd.h"

#include <stdlib.h>

#include <hca/hca.h>

#include "objects/uverbs_file.h"
#include "port/port.h"

void pd_destroy(struct object *object)
{
	if (port.hca.hca)
		hca_pd_end(port.hca.hca, ((struct pd *)object)->number);
	handle_remove(&object->file->handles, object);
	free(object);
}
