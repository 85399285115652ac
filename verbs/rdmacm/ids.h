/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The IDs of an open file of rdma_cm by number, with their owner. By this table router.c decides
 * whether a command goes to the daemon or to the kernel. If the daemon has ended and no other one
 * has come, the IDs that the kernel does not own report RDMA_CM_EVENT_DEVICE_REMOVAL. The program
 * can destroy them, as those of a removed device.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_IDS_H
#define URXE_VERBS_RDMACM_IDS_H

#include <rdma/rdma_user_cm.h>

#include "rdmacm/rdmacm_file.h"

#define RDMACM_OPTIONS 4 /* of level RDMA_OPTION_ID */

enum rdmacm_owner {
	RDMACM_OWNER_OPEN,   /* undecided: no address, or one that daemon and kernel both bind
				(router.c); the daemon has an ID, and the kernel may have one */
	RDMACM_OWNER_DAEMON, /* the kernel may have a further ID, which only listens */
	RDMACM_OWNER_KERNEL, /* the daemon has an ID for the number, which may listen, too */
};

/* A multicast group that a kernel's ID has joined. */
struct rdmacm_group {
	struct rdmacm_group *next;
	uint32_t number; /* the kernel's */
};

/*
 * The device that the program sees as that of a kernel's ID (hca_answer.h). Of a listener at the
 * wildcard: that of its first request. GUIDs and GIDs are in network byte order.
 */
struct rdmacm_device {
	bool known;       /* an answer has named the device */
	uint64_t guid;    /* node GUID of urxe0; 0: the device is the kernel's */
	uint64_t hca;     /* node GUID of the kernel's device, for which urxe0 may stand */
	uint8_t hca_port; /* port of the kernel's device */
	uint64_t gid[2];  /* of the ID's source address */
};

struct rdmacm_id {
	bool exists;
	bool removal_reported; /* the program has got DEVICE_REMOVAL for it */
	bool in_kernel;        /* the kernel has an ID for it, of the number kernel_id */
	bool bound;            /* the kernel's ID has an address */
	uint32_t kernel_id;
	/* Events of the daemon, and DEVICE_REMOVAL, that the program has got; those of a connection
	 * request count at the listener. */
	uint32_t events;
	uint32_t hidden_events; /* events that the kernel has counted and the program never got */
	enum rdmacm_owner owner;
	struct rdmacm_device device;
	struct rdmacm_group *groups; /* NULL: no group */
	/* The program's request that created it; uid 0: a connection request, not yet accepted. */
	struct rdma_ucm_create_id create;
	/* Options of level RDMA_OPTION_ID by number, for another ID of the kernel. */
	struct {
		uint8_t len; /* bytes; 0: not set */
		uint8_t value[sizeof(int)];
	} options[RDMACM_OPTIONS];
};

/* The ID of that number. NULL: no such ID, or there was no memory to record it. */
struct rdmacm_id *rdmacm_id_find(struct rdmacm_file *file, uint32_t number);
/* The ID with that create.uid. NULL: the file has none. */
struct rdmacm_id *rdmacm_id_find_uid(struct rdmacm_file *file, uint64_t uid);
/* The ID that has that number at the kernel. NULL: the file has none. */
struct rdmacm_id *rdmacm_id_find_kernel(struct rdmacm_file *file, uint32_t kernel_id);
/* The ID that has joined the group of that number at the kernel. NULL: the file has none. */
struct rdmacm_id *rdmacm_id_find_group(struct rdmacm_file *file, uint32_t number);
/* Adds a group to those of the ID. The caller sets group->number, which the kernel chooses later.
 * NULL: no memory. */
struct rdmacm_group *rdmacm_group_add(struct rdmacm_id *id);
/* Frees the group of that number; no effect if the ID has none. */
void rdmacm_group_remove(struct rdmacm_id *id, uint32_t number);
/* Ends the entry of an ID, and frees its groups. */
void rdmacm_id_remove(struct rdmacm_id *id);
/* Adds or overwrites the entry of a number: `exists` is true, all else is zero. NULL: no memory, or
 * the number exceeds 16 bits, by which librdmacm indexes. */
struct rdmacm_id *rdmacm_id_add(struct rdmacm_file *file, uint32_t number);
/* Sets *number to the lowest unused number; without a daemon, for new IDs of the kernel. 0, or
 * -ENOSPC: all numbers are in use. */
int rdmacm_id_unused(struct rdmacm_file *file, uint32_t *number);
/* When no daemon comes any more: sets *response to an event DEVICE_REMOVAL of an ID that has not
 * reported it yet. False: all IDs have reported it. */
bool rdmacm_ids_removal(struct rdmacm_file *file, struct rdmacm_response *response);
/* Sets *number to the smallest number of an ID that is >= *number. False: there is none. Needs no
 * file->lock while all other threads are stopped. */
bool rdmacm_ids_next(const struct rdmacm_file *file, uint32_t *number);
void rdmacm_ids_free(struct rdmacm_file *file);

#endif
