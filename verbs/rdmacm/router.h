/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides for each ID and command of rdma_cm: the daemon, or the kernel's own rdma_cm.
 *
 * The daemon numbers all IDs. An ID's first address decides who owns it: the daemon owns an ID that
 * is bound to an address of urxe0, or resolves a destination with a route from there; the kernel
 * owns an ID whose address the daemon does not know, or that an HCA has. An ID with the wildcard
 * address is open: it listens at both, on one port, until it resolves a destination. At an address
 * that both know, both listen, too, whichever owns the ID, because the HCA's port may go down or
 * become ACTIVE.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_ROUTER_H
#define URXE_VERBS_RDMACM_ROUTER_H

#include "rdmacm/rdmacm_file.h"

/*
 * Runs any command but GET_EVENT at the daemon, the kernel or both. 0, or a negative errno value;
 * -EIO: no daemon comes any more; -EBADF: another thread has closed the file.
 */
int rdmacm_route(struct rdmacm_file *file, struct rdmacm_request *request,
		 struct rdmacm_response *response);
/* Result: the kernel had an event that the program does not get; it may have another one. */
#define RDMACM_HIDDEN 1
/* Runs GET_EVENT at the kernel, and puts the daemon's numbers for new IDs into the event. 0,
 * RDMACM_HIDDEN, or -EAGAIN: no event now; other negative errno values. Never blocks for the
 * kernel. */
int rdmacm_route_kernel_event(struct rdmacm_file *file, const struct rdmacm_request *request,
			      struct rdmacm_response *response);

#endif
