/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The IDs of an open file of rdma_cm by number, with their owner: router.c decides by this table
 * whether a command goes to the daemon or to the kernel. After the daemon's end, the IDs that the
 * daemon owned report RDMA_CM_EVENT_DEVICE_REMOVAL and can be destroyed, as those of a removed
 * device.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_IDS_H
#define URXE_VERBS_RDMACM_IDS_H

#include <rdma/rdma_user_cm.h>

#include "rdmacm/rdmacm_file.h"

enum rdmacm_owner {
	RDMACM_OWNER_OPEN, /* no address yet, or the wildcard address: the daemon, and maybe both */
	RDMACM_OWNER_DAEMON,
	RDMACM_OWNER_KERNEL, /* the daemon only reserves the number */
};

struct rdmacm_id {
	bool exists;
	bool removal_reported;
	bool in_kernel; /* the kernel has an ID of its own for this one: */
	bool bound;     /* it has an address, */
	uint32_t kernel_id;
	uint32_t hidden_events; /* and events that the kernel counts and the program never got */
	enum rdmacm_owner owner;
	struct rdma_ucm_create_id create; /* uid 0: a connection request, not yet accepted */
};

/* NULL: no such ID, or no memory was left to record it. */
struct rdmacm_id *rdmacm_id_find(struct rdmacm_file *file, uint32_t number);
/* NULL: the file created no such ID. */
struct rdmacm_id *rdmacm_id_find_uid(struct rdmacm_file *file, uint64_t uid);
/* Adds or overwrites the entry of a number: `exists` is set, all else is zero. NULL: no memory, or
 * the number has more than the 16 bits of librdmacm's. */
struct rdmacm_id *rdmacm_id_add(struct rdmacm_file *file, uint32_t number);
/* -ENOSPC: all numbers are in use. For IDs of the kernel, without a daemon. */
int rdmacm_id_unused(struct rdmacm_file *file, uint32_t *number);
/* The next event DEVICE_REMOVAL, without a daemon. False: all IDs have reported it. */
bool rdmacm_ids_removal(struct rdmacm_file *file, struct rdmacm_response *response);
/* The first ID at or after *number. False: none. Also without file->lock while no thread runs. */
bool rdmacm_ids_next(const struct rdmacm_file *file, uint32_t *number);
void rdmacm_ids_free(struct rdmacm_file *file);

#endif
