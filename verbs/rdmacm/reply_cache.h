/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's replies to the QUERY and INIT_QP_ATTR commands that librdmacm gives after an event;
 * the daemon sends them with the event, which saves two wake-ups a command. Replies hold until the
 * ID's next command or event. Per open file, of the last RDMACM_CACHED_IDS IDs.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_REPLY_CACHE_H
#define URXE_VERBS_RDMACM_REPLY_CACHE_H

#include "rdmacm/rdmacm_file.h"

#define RDMACM_CACHED_IDS 64

/* An event of the ID was fetched: `len` bytes of replies replace the ID's earlier replies. */
void rdmacm_reply_cache_put(struct rdmacm_file *file, uint32_t id, const uint8_t *bytes,
			    uint32_t len);
/* True: the response is from the cache. */
bool rdmacm_reply_cache_get(const struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response);
/* The daemon has run the command: drops the replies that the command may have changed. */
void rdmacm_reply_cache_invalidate(struct rdmacm_file *file, const struct rdmacm_request *request);
void rdmacm_reply_cache_free(struct rdmacm_file *file);

#endif
