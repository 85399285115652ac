/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/rdmacm_restore.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <rxe/state_stream.h>

#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/rebuild.h"
#include "engine/clock.h"
#include "rdmacm/daemon_socket.h"
#include "rdmacm/ids.h"
#include "rdmacm/rdmacm_file.h"

/* Longest wait for each answer of urxed, ns; the same as for requests of the vNIC
 * (vnic/common/attach_socket.c). */
#define ANSWER_NS UINT64_C(5000000000)

uint64_t restore_deadline(void)
{
	return clock_monotonic() + ANSWER_NS;
}

static int explain_restore_error(int rc)
{
	switch (rc) {
	case -ETIMEDOUT: return checkpoint_fail(rc, "urxed does not answer");
	case -EBADMSG: return checkpoint_fail(rc, "an rdma_cm record is damaged");
	case -EPROTONOSUPPORT:
		return checkpoint_fail(rc, "a later version of urxed has written the rdma_cm "
					   "records");
	case -EEXIST:
		return checkpoint_fail(rc, "another process of this host has an rdma_cm ID of the "
					   "saved one, or its connection");
	case -EPERM:
		return checkpoint_fail(rc, "urxed runs as another user, and takes rdma_cm IDs only "
					   "from its own user and root");
	case -EADDRINUSE:
	case -EADDRNOTAVAIL:
		return checkpoint_fail(rc, "the host lacks an address of an rdma_cm ID, or another "
					   "process has its port");
	case -EINVAL:
		return checkpoint_fail(-EOPNOTSUPP, "the urxed that runs is an earlier version, "
						    "which takes no rdma_cm IDs");
	default: return checkpoint_explain(rc, "urxed does not take the rdma_cm IDs");
	}
}

/* With the lock of the device: gives urxed one record. Stores the token of the device in
 * file->token if urxed's answer has one. 0 or a negative errno value. */
static int give_record(struct rdmacm_file *file, const struct image_rdmacm_state *state)
{
	struct rdmacm_response response;
	struct rdmacm_request request =
		rdmacm_request_make(file, CM_ATTACH_RESTORE, state->bytes.at,
				    (uint32_t)state->bytes.length, sizeof(file->token));
	int rc = rdmacm_daemon_try(file, &request, &response, restore_deadline());

	if (!rc)
		rc = response.reply.status;
	if (rc)
		return explain_restore_error(rc);
	if (response.reply.out == sizeof(file->token))
		memcpy(&file->token, response.out, sizeof(file->token));
	return 0;
}

/*
 * Whether urxed's record is that of an event. A record is a stream (rxe/state_stream.h), in which
 * the kind follows the header.
 */
static bool is_event(const struct image_rdmacm_state *state)
{
	uint32_t kind = 0;

	if (state->bytes.length >= STATE_HEADER + sizeof(kind))
		memcpy(&kind, state->bytes.at + STATE_HEADER, sizeof(kind));
	return le32toh(kind) == CM_ATTACH_RECORD_EVENT;
}

/* Adds this library's state of an ID to the device. 0 or -ENOMEM. */
static int add_id(struct rdmacm_file *file, const struct rdmacm_id_record *record)
{
	struct rdmacm_id *id = rdmacm_id_add(file, record->number);

	if (!id)
		return -ENOMEM;
	id->events = record->events;
	id->owner = record->owner ? RDMACM_OWNER_DAEMON : RDMACM_OWNER_OPEN;
	id->create.uid = record->uid;
	id->create.ps = record->ps;
	id->create.qp_type = record->qp_type;
	return 0;
}

static int add_ids(const struct image *image, uint32_t device, struct rdmacm_file *file)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_RDMACM_ID]; i++)
		if (image->rdmacm_ids[i].device == device)
			rc = add_id(file, &image->rdmacm_ids[i]);
	return rc;
}

/* Gives urxed the device's records: those of events, or all others. 0 or a negative errno value. */
static int give_records(const struct image *image, uint32_t device, bool events,
			struct rdmacm_file *file)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < image->n[CHECKPOINT_RDMACM_STATE]; i++) {
		const struct image_rdmacm_state *state = &image->rdmacm_states[i];

		if (state->device == device && is_event(state) == events)
			rc = give_record(file, state);
	}
	return rc;
}

static int restore_records(const struct rebuilt *r, bool events)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->image->n[CHECKPOINT_RDMACM]; i++) {
		struct rdmacm_file *file = r->devices[i].file;

		if (!rdmacm_lock_until(file, restore_deadline()))
			return explain_restore_error(-ETIMEDOUT);
		rc = events ? 0 : add_ids(r->image, i, file);
		if (!rc)
			rc = give_records(r->image, i, events, file);
		pthread_mutex_unlock(&file->lock);
	}
	return rc;
}

/* The event of a connection request may name an ID of another device, so events come last. */
int rdmacm_restore(const struct rebuilt *r)
{
	int rc = restore_records(r, false);

	return rc ? rc : restore_records(r, true);
}

/*
 * Needs no answer: if the daemon has ended, the next daemon gets the IDs like those of any other
 * process. If the daemon does not answer in time, it thaws the device before it runs later commands
 * of the process. A thread that keeps the device's lock until the deadline prevents the thaw:
 * then the connections stay frozen.
 */
void rdmacm_restored(const struct rebuilt *r)
{
	struct rdmacm_response response;

	for (uint32_t i = 0; i < r->image->n[CHECKPOINT_RDMACM]; i++) {
		struct rdmacm_file *file = r->devices[i].file;
		const struct rdmacm_request request = {.command = {.command = CM_ATTACH_THAW},
						       .opening = file->opening,
						       .from = file};

		if (!r->image->rdmacms[i].n_states)
			continue;
		if (!rdmacm_lock_until(file, restore_deadline()))
			continue;
		(void)rdmacm_daemon_try(file, &request, &response, restore_deadline());
		pthread_mutex_unlock(&file->lock);
	}
}
