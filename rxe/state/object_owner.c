/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the owner contributes to the record of an object: its tag and its context. Also the list of
 * restored objects for the owner. */
#include <errno.h>
#include <stdlib.h>

#include "state/state_records.h"

uint64_t object_tag(struct state_device *d, enum urxe_state_kind kind, void *ctx)
{
	return d->save && d->save->tag ? d->save->tag(d->save->arg, kind, ctx) : 0;
}

void *object_context(struct state_device *d, enum urxe_state_kind kind, uint32_t id, uint64_t tag)
{
	const struct urxe_state_object object = {.kind = (uint8_t)kind, .id = id, .tag = tag};

	return d->restore->context ? d->restore->context(d->restore->arg, &object) : NULL;
}

void object_restored(struct state_device *d, const struct urxe_state_object *object)
{
	struct urxe_state_object *grown;
	uint32_t room = d->room ? 2 * d->room : 16;

	if (d->n_restored == d->room) {
		grown = realloc(d->restored, room * sizeof(*grown));
		if (!grown) {
			state_fail(&d->stream, -ENOMEM);
			return;
		}
		d->restored = grown;
		d->room = room;
	}
	d->restored[d->n_restored++] = *object;
}
