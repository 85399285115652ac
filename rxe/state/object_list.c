/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of the objects of a device, in the order of the stream. */
#include <errno.h>
#include <stdlib.h>

#include "state/state_records.h"

void state_list_add(struct state_device *d, struct state_list *list, void *object)
{
	uint32_t room = list->room ? 2 * list->room : 16;
	void **grown;

	if (list->n == list->room) {
		grown = realloc(list->object, room * sizeof(*grown));
		if (!grown) {
			state_fail(&d->stream, -ENOMEM);
			return;
		}
		list->object = grown;
		list->room = room;
	}
	list->object[list->n++] = object;
}

void state_list_free(struct state_list *list)
{
	free(list->object);
	list->object = NULL;
}
