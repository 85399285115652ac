/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of librxe's poll functions: a poll of an empty completion queue runs the engine.
 *
 * librxe's functions only read the ring. The hooks replace them in the public table of the context
 * (struct ibv_context, <infiniband/verbs.h>). Every program calls by that table, also if it loads
 * libibverbs by dlopen. If a program calls librxe in another way, the engine thread runs the
 * engine. For uverbs/cmd_cq.c and other commands that name a CQ.
 */
#ifndef URXE_VERBS_POLL_POLL_HOOK_H
#define URXE_VERBS_POLL_POLL_HOOK_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_context;
struct uverbs_file;
struct cq;

/*
 * Copies the ibv_context of the ibv_cq at user_handle, and sets *at to its address. False: no such
 * memory. A user handle is opaque to the ABI, so it may be no pointer: before the caller writes to
 * the context, it checks that context->cmd_fd is its own descriptor.
 */
bool poll_hook_read_context(uint64_t user_handle, struct ibv_context *context, uint64_t *at);
/*
 * Call it when a command on descriptor fd has passed the user_handle of a CQ, the address of its
 * ibv_cq: replaces poll_cq in the ibv_context of that ibv_cq, and keeps librxe's function in
 * file->poll_cq. No effect if the address leads to no ibv_context of this descriptor.
 */
void poll_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle);
/*
 * For a restored context, whose memory has the hooks already. Whether poll_cq in the ibv_context of
 * the ibv_cq at user_handle is this library's function, and file->poll_cq is librxe's.
 */
bool poll_hook_is_installed(const struct uverbs_file *file, uint64_t user_handle);
/* Call it when a command after CREATE_CQ names the CQ. By then librxe has set the functions in the
 * ibv_cq_ex of an extended CQ: replaces start_poll, next_poll and end_poll there, once. */
void poll_hook_install_ex(struct cq *cq);

#endif
