/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's replies to the QUERY and INIT_QP_ATTR commands that librdmacm gives after an event;
 * the daemon sends them with the event, which saves two wake-ups for each command. Replies are
 * valid until the ID's next other command or event. Each open file has those of its last
 * RDMACM_CACHED_IDS IDs that had an event.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_REPLY_CACHE_H
#define URXE_VERBS_RDMACM_REPLY_CACHE_H

#include "rdmacm/rdmacm_file.h"

#define RDMACM_CACHED_IDS 64

/* Call it when an event of the ID was fetched: the `len` bytes of replies with it replace the ID's
 * earlier replies. */
void rdmacm_reply_cache_put(struct rdmacm_file *file, uint32_t id, const uint8_t *bytes,
			    uint32_t len);
/* True: *response is set, from the cache. False: the cache has no reply to the request. */
bool rdmacm_reply_cache_get(const struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response);
/* Call it when the daemon has run the command: drops the replies of its ID, unless the command was
 * a query. */
void rdmacm_reply_cache_invalidate(struct rdmacm_file *file, const struct rdmacm_request *request);
void rdmacm_reply_cache_free(struct rdmacm_file *file);

#endif
