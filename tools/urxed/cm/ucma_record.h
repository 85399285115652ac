/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The records of a saved rdma_cm device, portable and without pointers. Each record is a stream of
 * its own, with the header of rxe/state_stream.h; docs/checkpoint.md has the format.
 * ucma_checkpoint.c calls this.
 */
#ifndef URXE_URXED_CM_UCMA_RECORD_H
#define URXE_URXED_CM_UCMA_RECORD_H

#include <stdint.h>

#include <cm/attach_protocol.h>
#include <rdma/rdma_user_cm.h>

#include "urxed/cm/ucma.h"

/*
 * Version 1 lacks cma_id.route_ack_timeout. Versions 1 and 2 lack cma_id.route_tos, and have
 * cma_id.psn twice.
 */
#define UCMA_RECORD_VERSION 3
#define UCMA_NO_NUMBER      UINT32_MAX

/* Records follow each other in this order, so IDs come after the device, and groups and events
 * after the IDs that they name. An event may also name an ID of another device of the process. */
enum ucma_record_kind {
	UCMA_RECORD_FILE = 1,
	UCMA_RECORD_ID,
	UCMA_RECORD_GROUP,
	UCMA_RECORD_EVENT = CM_ATTACH_RECORD_EVENT
};

struct ucma_record {
	uint32_t kind;
	union {
		struct {
			uint64_t token; /* token of the saved device */
		} file;
		struct {
			struct cma_saved saved;
			/* The host's address at saved.id.sgid_index, if the ID has a device. */
			uint8_t own[16];
			uint64_t uid;
			uint32_t events_reported, backlog, reserve;
		} id;
		struct {
			uint32_t number, id; /* of the group, and of the ID that has joined it */
			uint64_t uid;
			uint32_t events_reported;
		} group;
		struct {
			uint32_t id, child, group; /* child, group: UCMA_NO_NUMBER = none */
			struct rdma_ucm_event_resp resp;
		} event;
	};
};

/* Returns the number of bytes written, at most CM_ATTACH_BYTES; 0: a value is out of range. */
uint32_t ucma_record_write(struct ucma_record *r, uint8_t out[CM_ATTACH_BYTES]);
/* Reads a record, and checks all that can be checked without other records. Returns -EBADMSG if it
 * is damaged or a value is out of range, or -EPROTONOSUPPORT if it is of a later version. */
int ucma_record_read(struct ucma_record *r, const uint8_t *bytes, uint32_t n);

#endif
