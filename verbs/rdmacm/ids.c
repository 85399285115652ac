/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/ids.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK          256u
#define IDS            65536u /* librdmacm indexes IDs by 16 bits; the daemon has as many */
#define DEVICE_REMOVAL 11     /* of enum rdma_cm_event_type */

/* The IDs of a file, in chunks: the daemon numbers the IDs of all programs in turn, so a file's
 * numbers may lie far apart. A chunk lasts until the file is closed. */
struct rdmacm_ids {
	struct rdmacm_id *chunks[IDS / CHUNK];
};

struct rdmacm_id *rdmacm_id_find(struct rdmacm_file *file, uint32_t number)
{
	struct rdmacm_id *chunk =
		file->ids && number < IDS ? file->ids->chunks[number / CHUNK] : NULL;

	return chunk && chunk[number % CHUNK].exists ? &chunk[number % CHUNK] : NULL;
}

struct rdmacm_id *rdmacm_id_add(struct rdmacm_file *file, uint32_t number)
{
	struct rdmacm_id **chunk, *id;

	if (!file->ids)
		file->ids = calloc(1, sizeof(*file->ids));
	if (!file->ids || number >= IDS)
		return NULL;
	chunk = &file->ids->chunks[number / CHUNK];
	if (!*chunk)
		*chunk = calloc(CHUNK, sizeof(**chunk));
	if (!*chunk)
		return NULL;
	id = &(*chunk)[number % CHUNK];
	*id = (struct rdmacm_id){.exists = true};
	return id;
}

int rdmacm_id_unused(struct rdmacm_file *file, uint32_t *number)
{
	for (*number = 0; *number < IDS; ++*number)
		if (!rdmacm_id_find(file, *number))
			return 0;
	return -ENOSPC;
}

struct rdmacm_id *rdmacm_id_find_uid(struct rdmacm_file *file, uint64_t uid)
{
	for (uint32_t i = 0; rdmacm_ids_next(file, &i); i++) {
		struct rdmacm_id *id = rdmacm_id_find(file, i);

		if (id->create.uid == uid)
			return id;
	}
	return NULL;
}

struct rdmacm_id *rdmacm_id_find_kernel(struct rdmacm_file *file, uint32_t kernel_id)
{
	for (uint32_t i = 0; rdmacm_ids_next(file, &i); i++) {
		struct rdmacm_id *id = rdmacm_id_find(file, i);

		if (id->in_kernel && id->kernel_id == kernel_id)
			return id;
	}
	return NULL;
}

void rdmacm_id_remove(struct rdmacm_id *id)
{
	while (id->groups)
		rdmacm_group_remove(id, id->groups->number);
	id->exists = false;
}

/* --- Multicast groups */

struct rdmacm_group *rdmacm_group_add(struct rdmacm_id *id)
{
	struct rdmacm_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->next = id->groups;
	id->groups = group;
	return group;
}

/* Returns the address of the pointer to the group; the pointer is NULL if there is none. */
static struct rdmacm_group **find_group(struct rdmacm_id *id, uint32_t number)
{
	struct rdmacm_group **at = &id->groups;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

void rdmacm_group_remove(struct rdmacm_id *id, uint32_t number)
{
	struct rdmacm_group **at = find_group(id, number), *group = *at;

	if (!group)
		return;
	*at = group->next;
	free(group);
}

struct rdmacm_id *rdmacm_id_find_group(struct rdmacm_file *file, uint32_t number)
{
	for (uint32_t i = 0; rdmacm_ids_next(file, &i); i++) {
		struct rdmacm_id *id = rdmacm_id_find(file, i);

		if (*find_group(id, number))
			return id;
	}
	return NULL;
}

/* --- The end of the daemon, and of the file */

static bool reports_removal(const struct rdmacm_id *id)
{
	return id && id->create.uid && !id->removal_reported && id->owner != RDMACM_OWNER_KERNEL;
}

bool rdmacm_ids_removal(struct rdmacm_file *file, struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event = {.event = DEVICE_REMOVAL};
	struct rdmacm_id *id;

	while (event.id < IDS && !reports_removal(rdmacm_id_find(file, event.id)))
		event.id++;
	if (event.id == IDS)
		return false;
	id = rdmacm_id_find(file, event.id);
	id->removal_reported = true;
	id->events++;
	event.uid = id->create.uid;
	memcpy(response->out, &event, sizeof(event));
	response->reply =
		(struct cm_attach_reply){.out = offsetof(struct rdma_ucm_event_resp, reserved)};
	return true;
}

bool rdmacm_ids_next(const struct rdmacm_file *file, uint32_t *number)
{
	while (file->ids && *number < IDS) {
		const struct rdmacm_id *chunk = file->ids->chunks[*number / CHUNK];

		if (chunk && chunk[*number % CHUNK].exists)
			return true;
		*number += chunk ? 1 : CHUNK - *number % CHUNK;
	}
	return false;
}

void rdmacm_ids_free(struct rdmacm_file *file)
{
	for (uint32_t i = 0; rdmacm_ids_next(file, &i); i++)
		rdmacm_id_remove(rdmacm_id_find(file, i));
	for (uint32_t i = 0; file->ids && i < IDS / CHUNK; i++)
		free(file->ids->chunks[i]);
	free(file->ids);
	file->ids = NULL;
}
