/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inline progress: polling an empty completion queue drives the engine.
 *
 * librxe's poll functions only look at the ring. They are replaced in the
 * context's public table (struct ibv_context, <infiniband/verbs.h>), which
 * every client calls through, however it got hold of libibverbs. One that
 * escapes is served by the engine thread.
 */
#ifndef URXE_VERBS_ENGINE_POLL_HOOK_H
#define URXE_VERBS_ENGINE_POLL_HOOK_H

#include <stdint.h>

struct uverbs_file;
struct cq;

/* CREATE_CQ on descriptor fd named the ibv_cq at user_handle; its context is set already. */
void poll_wrap(struct uverbs_file *file, int fd, uint64_t user_handle);
/* A later command names the CQ: by now an ibv_cq_ex has its functions. */
void poll_wrap_ex(struct cq *cq);

#endif
