/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe_state_restore: reads the records in their order, and ends at the first error. */
#include <errno.h>
#include <stdlib.h>

#include "objects/device.h"
#include "state/state_records.h"

const struct state_format device_format = {.name = "urxestat", .version = URXE_STATE_VERSION};

int urxe_state_same_memory(void *arg, struct urxe_state_region *region)
{
	(void)arg, (void)region;
	return 0;
}

/* --- Records. */

static void restore_record(struct state_device *d, uint32_t kind)
{
	switch (kind) {
	case STATE_RECORD_CQ: cq_record(d, NULL); break;
	case STATE_RECORD_MR: mr_record(d, NULL); break;
	case STATE_RECORD_FAST_MR: fast_mr_record(d, NULL); break;
	case STATE_RECORD_SRQ: srq_record(d, NULL); break;
	case STATE_RECORD_QP: qp_record(d, NULL); break;
	case STATE_RECORD_MW: mw_record(d, NULL); break;
	case STATE_RECORD_GROUP: group_record(d, NULL); break;
	case STATE_RECORD_READY: ready_record(d); break;
	case STATE_RECORD_COMPLETIONS: completions_record(d, 0); break;
	default: state_fail(&d->stream, -EBADMSG); break;
	}
}

static void restore_records(struct state_device *d)
{
	struct state_stream *s = &d->stream;
	uint32_t last = STATE_RECORD_DEVICE, kind;

	device_record(d);
	while ((kind = state_next_record(s)) && kind != STATE_RECORD_END) {
		state_require(s, kind >= last);
		last = kind;
		if (state_ok(s))
			restore_record(d, kind);
	}
	state_begin(s, STATE_RECORD_END);
	state_end(s);
	stream_finish_restore(s);
}

static void report_objects(const struct state_device *d)
{
	for (uint32_t i = 0; d->restore->restored && i < d->n_restored; i++)
		d->restore->restored(d->restore->arg, &d->restored[i]);
}

/* --- The device. */

/* Restores all objects; returns 0 or the stream's error. Rights for the copy transport are
 * published last: peers never see the rights of a device that an error destroys. */
static int restore_device(struct state_device *d)
{
	struct urxe_copy_table *table = d->dev->attr.copy_table;

	d->dev->attr.copy_table = NULL;
	d->dev->now = d->stream.now;
	restore_records(d);
	d->dev->attr.copy_table = table;
	return d->stream.error;
}

int urxe_state_restore(const struct urxe_dev_attr *attr, uint64_t now,
		       const struct urxe_state_restore *how, const uint8_t *stream, size_t length,
		       struct urxe_dev **dev)
{
	struct state_device d = {.restore = how};
	int rc;

	rc = stream_begin_restore(&d.stream, &device_format, stream, length);
	d.stream.now = now;
	if (how->max_bytes)
		d.stream.budget = how->max_bytes;
	if (!rc)
		rc = urxe_dev_create(attr, &d.dev);
	if (rc)
		return rc;
	rc = restore_device(&d);
	if (rc) {
		urxe_dev_destroy(d.dev);
	} else {
		urxe_copy_rights_publish(d.dev);
		report_objects(&d);
		*dev = d.dev;
	}
	state_list_free(&d.cqs);
	state_list_free(&d.srqs);
	free(d.restored);
	return rc;
}

int urxe_state_read_attr(const uint8_t *stream, size_t length, struct urxe_state_attr *attr)
{
	struct state_stream s;

	*attr = (struct urxe_state_attr){0};
	stream_begin_restore(&s, &device_format, stream, length);
	state_begin(&s, STATE_RECORD_DEVICE);
	device_attr_record(&s, &attr->attr, &attr->dcqcn);
	return s.error;
}
