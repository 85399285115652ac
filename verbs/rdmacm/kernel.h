/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's own /dev/infiniband/rdma_cm, for a machine that has RDMA devices beside urxe0.
 * router.c decides which IDs and commands belong there.
 *
 * All functions but the first: with file->lock; file->kernel is open.
 */
#ifndef URXE_VERBS_RDMACM_KERNEL_H
#define URXE_VERBS_RDMACM_KERNEL_H

#include <stdbool.h>

#include "rdmacm/ids.h"

/* A nonblocking descriptor; -1: the kernel has no such device for this process. */
int rdmacm_kernel_open(void);
/*
 * Whether an HCA backs the device now. QP1 of its addresses is the kernel's, so the kernel's
 * rdma_cm must make connections from and to them.
 */
bool rdmacm_kernel_has_addresses(void);
/* Runs the command with kernel_id for its ID or group. 0, or a negative errno value. */
int rdmacm_kernel_run(struct rdmacm_file *file, const struct rdmacm_request *request,
		      uint32_t kernel_id, struct rdmacm_response *response);

/* Creates the kernel's ID where it has none yet. 0, or a negative errno value. */
int rdmacm_kernel_create(struct rdmacm_file *file, struct rdmacm_id *id);
/* Returns how many events the program must acknowledge; 0 where the kernel has no ID. */
uint32_t rdmacm_kernel_destroy(struct rdmacm_file *file, struct rdmacm_id *id);
/* Moves the ID from another file: as rdmacm_kernel_destroy(), or a negative errno value. */
int rdmacm_kernel_migrate(struct rdmacm_file *from, struct rdmacm_file *to, struct rdmacm_id *id);
/* Gives the kernel's ID an address as QUERY_ADDR has it. 0, or a negative errno value. */
int rdmacm_kernel_bind(struct rdmacm_file *file, struct rdmacm_id *id,
		       const struct rdma_ucm_query_addr_resp *addr);

#endif
