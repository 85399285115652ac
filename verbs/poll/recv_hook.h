/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks of librxe's functions that post receives: they only write to the ring, and an HCA that
 * executes the queue pair must get the requests. As in poll_hook.h; only while the device has an
 * HCA.
 */
#ifndef URXE_VERBS_POLL_RECV_HOOK_H
#define URXE_VERBS_POLL_RECV_HOOK_H

#include <stdint.h>

struct uverbs_file;

/* With the lock: a command on descriptor fd names a CQ, whose ibv_cq is at user_handle. */
void recv_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle);
/*
 * With the lock: hands the HCA receives of programs that call no hook, as far as they are in the
 * rings.
 */
void recv_hook_refill_all(void);

#endif
