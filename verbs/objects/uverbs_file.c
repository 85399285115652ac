/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/uverbs_file.h"

#include "process/log.h"

bool uverbs_object_event(const struct object *object, uint32_t type)
{
	const struct comp_channel_event event = {.element = object->user_handle, .type = type};

	log_debug("asynchronous event %u", type);
	return object->file->async && comp_channel_send_published(object->file->async, &event);
}

void uverbs_file_event(struct uverbs_file *file, uint64_t element, uint32_t type)
{
	struct comp_channel_event event = {.element = element, .type = type};

	log_debug("asynchronous event %u", type);
	if (file->async)
		comp_channel_send(file->async, &event);
}
