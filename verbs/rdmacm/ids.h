/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which IDs of urxed's an open device has, for the day when urxed is not there any more: as the
 * kernel does when a device goes, each is told so (RDMA_CM_EVENT_DEVICE_REMOVAL), and can be
 * destroyed. IDs of two daemons may have one number, so each open device keeps its own.
 */
#ifndef URXE_VERBS_RDMACM_IDS_H
#define URXE_VERBS_RDMACM_IDS_H

#include <stdbool.h>

#include "rdmacm/file.h"

struct rdmacm_id {
	uint64_t uid; /* the program's name for it; 0: it has none yet, and is told nothing */
	bool there;
	bool told;      /* of the end */
	bool elsewhere; /* it is the kernel's, which goes on */
};

/* urxed has done a command that makes, names or moves IDs, or told an event; others are nothing. */
void rdmacm_ids_done(struct rdmacm_file *file, const struct rdmacm_request *request,
		     const struct rdmacm_response *response);
/*
 * DESTROY_ID, before urxed is asked: it gives the number to another one as soon as it is free.
 * What there was of it.
 */
struct rdmacm_id rdmacm_ids_take(struct rdmacm_file *file, const struct rdmacm_request *request);
/* It is still there. */
void rdmacm_ids_restore(struct rdmacm_file *file, const struct rdmacm_request *request,
			struct rdmacm_id id);
/* urxed has gone: what it would have answered. False: there was no such ID. */
bool rdmacm_ids_destroyed(struct rdmacm_id id, struct rdmacm_response *response);
/* urxed has gone: the next event; false: all IDs were told. */
bool rdmacm_ids_removal(struct rdmacm_file *file, struct rdmacm_response *response);
/*
 * urxed has gone, and gives no more numbers: one that no ID has, for a new one of the kernel's.
 * -ENOSPC: there is none.
 */
int rdmacm_ids_invent(struct rdmacm_file *file, uint32_t *number);
/* Addresses have decided whether the ID is the kernel's: those are not told of urxed's end. */
void rdmacm_ids_elsewhere(struct rdmacm_file *file, uint32_t number, bool elsewhere);
/* The device is closed. */
void rdmacm_ids_forget(struct rdmacm_file *file);

#endif
