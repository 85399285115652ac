/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's own rdma_cm, where it has one, for RDMA devices of its own.
 *
 * Each ID of the program is one of urxed's, whose number the program knows, and may be one of the
 * kernel's as well. Addresses decide: an ID that is bound to one of urxe0's, or resolves a
 * destination to which a way leads from there, is urxed's; where urxed says that it has no such
 * address and no such way, it is the kernel's. Who listens at the wildcard address listens at both.
 */
#ifndef URXE_VERBS_RDMACM_KERNEL_H
#define URXE_VERBS_RDMACM_KERNEL_H

#include "rdmacm/file.h"

/* A descriptor of the kernel's device, which does not block; -1: there is none for this process. */
int rdmacm_kernel_open(struct rdmacm_file *file);
/* Runs any command but GET_EVENT on both or the right one. 0, or a negative errno value. */
int rdmacm_kernel_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response);
/* GET_EVENT: the kernel's next one. -EAGAIN: it has none. */
int rdmacm_kernel_event(struct rdmacm_file *file, const struct rdmacm_request *request,
			struct rdmacm_response *response);

#endif
