/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An open /dev/infiniband/rdma_cm and the commands on their way, for the files that carry them. */
#ifndef URXE_VERBS_RDMACM_FILE_H
#define URXE_VERBS_RDMACM_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <cm/attach.h>

#include "rdmacm/rdmacm.h"

struct rdmacm_id;
struct rdmacm_foretold;
struct twin;

struct rdmacm_file {
	struct fd_object fd;
	pthread_mutex_t lock; /* a command at a time */
	atomic_uint opening;  /* counts up when it is closed, since it is used again */
	int socket;           /* -1: there is no urxed */
	int reader; /* of the packets for events: the program's descriptor, or what it watches */
	int bell;   /* the other end, urxed's too; -1: there will be none any more */
	bool over;  /* urxed has gone for good */
	uint64_t lost_at;     /* clock_monotonic; when urxed went last, 0: never */
	uint64_t fetched;     /* the order of the last event, as cm/attach.h has it */
	pthread_cond_t found; /* another urxed, or none */
	int kernel;           /* the kernel's own rdma_cm; -1: it has none */
	atomic_uint turn;     /* whose events were asked for last */
	pid_t pid;            /* a child's IDs would be its parent's */
	uint64_t token;
	struct twin *twins;    /* by number (rdmacm_kernel.c); kept for the next opening */
	struct rdmacm_id *ids; /* by number (rdmacm_ids.h); NULL: it has made none */
	struct rdmacm_foretold *foretold; /* rdmacm_foretold.h; NULL: nothing yet */
	LIST_ENTRY(rdmacm_file) link;
	bool kept; /* in the keeper's list */
	LIST_ENTRY(rdmacm_file) kept_link;
};

struct rdmacm_request {
	struct cm_attach_command command;
	uint8_t in[CM_ATTACH_BYTES + CM_ATTACH_OPTION];
	unsigned int opening; /* of the file, to which it was given */
};

struct rdmacm_response {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

/* With file->lock: the file that the request was given to is open yet, and no other one is it. */
static inline bool rdmacm_is_open(const struct rdmacm_file *file,
				  const struct rdmacm_request *request)
{
	return file->opening == request->opening;
}

/* Its lock, as nobody has it: of a new one, or in the child of a fork. */
void rdmacm_file_unlocked(struct rdmacm_file *file);

/* --- rdmacm_layout.c */

/* Where in a command the address for its response is; RDMACM_NOWHERE: it has none. */
#define RDMACM_NOWHERE 0xffff
uint32_t rdmacm_response_at(uint32_t command);
/* Where the number of its ID is, or of its group. */
uint32_t rdmacm_id_at(uint32_t command);
/* That number. False: it has none, or is too short to say which. */
bool rdmacm_id_of(const struct rdmacm_request *request, uint32_t *number);

/* --- rdmacm.c */

/* Has urxed run any command but GET_EVENT. 0, or a negative errno value. */
int rdmacm_own(struct rdmacm_file *file, struct rdmacm_request *request,
	       struct rdmacm_response *response);
/* The open device that MIGRATE_ID names; NULL: it names none. */
struct rdmacm_file *rdmacm_migrated_from(const struct rdmacm_request *request);

#endif
