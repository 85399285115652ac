/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_pd.h"

#include <stdbool.h>
#include <stdlib.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "objects/uverbs_file.h"

static bool is_used(uint32_t number)
{
	const struct uverbs_file *file;

	LIST_FOREACH(file, &adapter.files, link)
	{
		const struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(&file->handles, OBJECT_PD, &at)))
			if (((const struct pd *)object)->number == number)
				return true;
	}
	return false;
}

uint32_t pd_new_number(void)
{
	if (adapter.last_pd < UINT32_MAX)
		return ++adapter.last_pd;
	do
		adapter.reused_pd = adapter.reused_pd % UINT32_MAX + 1;
	while (is_used(adapter.reused_pd));
	return adapter.reused_pd;
}

void pd_destroy(struct object *object)
{
	if (adapter.hca.hca)
		hca_pd_end(adapter.hca.hca, ((struct pd *)object)->number);
	handle_remove(&object->file->handles, object);
	free(object);
}
