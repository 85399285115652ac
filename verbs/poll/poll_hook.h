/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of librxe's poll functions: a poll of an empty completion queue runs the engine.
 *
 * librxe's functions only read the ring. They are replaced in the public table of the context
 * (struct ibv_context, <infiniband/verbs.h>), through which every program calls, also if it loads
 * libibverbs by dlopen. The engine thread serves programs that call librxe in another way. For
 * uverbs/cmd_cq.c and other commands that name a CQ.
 */
#ifndef URXE_VERBS_POLL_POLL_HOOK_H
#define URXE_VERBS_POLL_POLL_HOOK_H

#include <stdbool.h>
#include <stdint.h>

struct uverbs_file;
struct cq;

/* CREATE_CQ on descriptor fd has named the ibv_cq at user_handle, whose context is set. */
void poll_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle);
/*
 * A restored context has the hooks already: whether the context of the ibv_cq at user_handle calls
 * this library, and file->poll_cq is librxe's function.
 */
bool poll_hook_is_installed(const struct uverbs_file *file, uint64_t user_handle);
/* A later command names the CQ: if it is an ibv_cq_ex, its functions are set now. */
void poll_hook_install_ex(struct cq *cq);

#endif
