/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/reply_cache.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

struct entry {
	uint32_t id;
	uint32_t len; /* 0: empty */
	uint8_t bytes[CM_ATTACH_CACHED];
};

struct rdmacm_reply_cache {
	uint32_t next; /* the oldest entry, which is replaced next */
	struct entry entries[RDMACM_CACHED_IDS];
};

static struct entry *find_cached_reply(const struct rdmacm_file *file, uint32_t id)
{
	struct rdmacm_reply_cache *cache = file->reply_cache;

	for (uint32_t i = 0; cache && i < RDMACM_CACHED_IDS; i++)
		if (cache->entries[i].len && cache->entries[i].id == id)
			return &cache->entries[i];
	return NULL;
}

static void drop_entry(struct rdmacm_file *file, uint32_t id)
{
	struct entry *entry = find_cached_reply(file, id);

	if (entry)
		entry->len = 0;
}

/* Returns the oldest entry, to be overwritten. NULL: no memory; librdmacm's commands go to the
 * daemon then. */
static struct entry *new_entry(struct rdmacm_file *file)
{
	if (!file->reply_cache)
		file->reply_cache = calloc(1, sizeof(*file->reply_cache));
	if (!file->reply_cache)
		return NULL;
	return &file->reply_cache->entries[file->reply_cache->next++ % RDMACM_CACHED_IDS];
}

void rdmacm_reply_cache_put(struct rdmacm_file *file, uint32_t id, const uint8_t *bytes,
			    uint32_t len)
{
	struct entry *entry;

	drop_entry(file, id);
	entry = len ? new_entry(file) : NULL;
	if (!entry)
		return;
	entry->id = id;
	entry->len = len;
	memcpy(entry->bytes, bytes, len);
}

/* QUERY and INIT_QP_ATTR have the same layout, with `option` and `qp_state` at one offset. */
static bool is_query(const struct rdmacm_request *request)
{
	uint32_t command = request->command.command;

	return (command == RDMA_USER_CM_CMD_QUERY || command == RDMA_USER_CM_CMD_INIT_QP_ATTR) &&
	       request->command.in >= sizeof(struct rdma_ucm_query);
}

/* Returns the cached reply to the command, and sets *len to its bytes. NULL: not cached. `option`:
 * that of QUERY, or qp_state of INIT_QP_ATTR. */
static const uint8_t *find_reply(const struct entry *entry, uint32_t command, uint32_t option,
				 uint32_t *len)
{
	const uint8_t *at = entry->bytes, *end = at + entry->len;
	struct cm_attach_cached head;

	while ((size_t)(end - at) >= sizeof(head)) {
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		if (head.out > (size_t)(end - at))
			break;
		*len = head.out;
		if (head.command == command && head.option == option)
			return at;
		at += head.out;
	}
	return NULL;
}

bool rdmacm_reply_cache_get(const struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response)
{
	const struct entry *entry;
	struct rdma_ucm_query query;
	const uint8_t *bytes;
	uint32_t len;

	if (!is_query(request))
		return false;
	memcpy(&query, request->in, sizeof(query));
	entry = find_cached_reply(file, query.id);
	bytes = entry ? find_reply(entry, request->command.command, query.option, &len) : NULL;
	/* The daemon answers if the program has too little room for the response. */
	if (!bytes || len > request->command.out)
		return false;
	memcpy(response->out, bytes, len);
	response->reply = (struct cm_attach_reply){.out = len};
	return true;
}

void rdmacm_reply_cache_invalidate(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	uint32_t id;

	if (!is_query(request) && rdmacm_id_of(request, &id))
		drop_entry(file, id);
}

void rdmacm_reply_cache_free(struct rdmacm_file *file)
{
	free(file->reply_cache);
	file->reply_cache = NULL;
}
