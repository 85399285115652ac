/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's own /dev/infiniband/rdma_cm, for a machine that has RDMA devices beside urxe0.
 * router.c decides which IDs and commands belong there.
 *
 * Functions with an argument `file`: with its lock, and file->kernel is open.
 */
#ifndef URXE_VERBS_RDMACM_KERNEL_H
#define URXE_VERBS_RDMACM_KERNEL_H

#include <stdbool.h>

#include "rdmacm/ids.h"

/* Opens the device. Returns a nonblocking descriptor; -1: the kernel has no such device for this
 * process. */
int rdmacm_kernel_open(void);
/* Reads VNIC_HCA_FILE of the daemon. Returns the number of bytes, at most `size`; 0: there is no
 * such file; or a negative errno value. */
ssize_t rdmacm_kernel_read_hca(char *text, size_t size);

/* An entry of a GID table of the kernel. */
struct rdmacm_kernel_gid {
	uint64_t gid[2]; /* in network byte order */
	bool v1;         /* RoCE v1; else RoCE v2 */
};

/* Reads the entry `index` of the RDMA device's port. 0; -ENOENT: the device has no such entry, or
 * the process no sysfs; or another negative errno value, as -EINVAL for an empty entry. */
int rdmacm_kernel_read_gid(const char *device, uint8_t port, uint32_t index,
			   struct rdmacm_kernel_gid *entry);
/*
 * Whether an HCA, whose port is active, backs urxe0 now. Then QP1 at urxe0's addresses is the
 * kernel's, so the kernel's rdma_cm must make connections from and to them. 1, 0, or -EMFILE,
 * -ENFILE or -ENOMEM: descriptors or memory are lacking to find out.
 */
int rdmacm_kernel_has_active_hca(void);
/* Has the kernel run the command, with kernel_id in place of the number of its ID or group. 0, or a
 * negative errno value. */
int rdmacm_kernel_run(struct rdmacm_file *file, const struct rdmacm_request *request,
		      uint32_t kernel_id, struct rdmacm_response *response);

/* Creates an ID of the kernel for `id`, with the noted options, unless there is one. 0, or a
 * negative errno value. */
int rdmacm_kernel_create(struct rdmacm_file *file, struct rdmacm_id *id);
/* Notes an option that a command SET_OPTION has set, for the kernel's next ID of `id`. */
void rdmacm_kernel_note_option(struct rdmacm_id *id, const struct rdmacm_request *request);
/* Has the kernel run SET_OPTION for its ID of `id`, which it creates if necessary, and notes the
 * option. 0, or a negative errno value. */
int rdmacm_kernel_set_option(struct rdmacm_file *file, struct rdmacm_id *id,
			     const struct rdmacm_request *request);
/* Destroys the kernel's ID of `id`. Returns the number of the kernel's events of it that the
 * program must acknowledge; 0 without such an ID, or after an error. */
uint32_t rdmacm_kernel_destroy(struct rdmacm_file *file, struct rdmacm_id *id);
/* Moves the kernel's ID of `id` from one file to another. Returns the number of its events that the
 * program must acknowledge, or a negative errno value; 0 without such an ID. With both locks. */
int rdmacm_kernel_migrate(struct rdmacm_file *from, struct rdmacm_file *to, struct rdmacm_id *id);
/* Binds the kernel's ID of `id`, which it creates if necessary, to the source address of *addr. 0,
 * or a negative errno value. */
int rdmacm_kernel_bind(struct rdmacm_file *file, struct rdmacm_id *id,
		       const struct rdma_ucm_query_addr_resp *addr);

#endif
