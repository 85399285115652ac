/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replaces post_recv and post_srq_recv in the ibv_context of rdma-core's provider librxe, as
 * poll_hook.h does with the functions that poll. The provider's functions only write to the ring;
 * the hooks also hand the requests to an HCA that executes the queue pair. Called only while the
 * device has an HCA. Callers hold adapter.lock.
 */
#ifndef URXE_VERBS_POLL_RECV_HOOK_H
#define URXE_VERBS_POLL_RECV_HOOK_H

#include <stdint.h>

struct uverbs_file;

/*
 * Call it when a command on descriptor fd has passed the user_handle of a CQ, which is the address
 * of its ibv_cq. The ibv_cq has the address of the ibv_context, in which the function installs the
 * hooks, once. If no such context is found, sets adapter.hca.unhooked: then each run of the engine
 * reads the receive rings.
 */
void recv_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle);

#endif
