/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A recording begins with the state of its device. */
#include <errno.h>
#include <stdlib.h>

#include "device/qp_lifecycle.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "record/device_recording.h"

static uint64_t context_tag(void *arg, enum urxe_state_kind kind, void *ctx)
{
	(void)arg;
	(void)kind;
	return (uintptr_t)ctx;
}

static uint32_t owner_bits(const struct urxe_dev_attr *attr)
{
	return (attr->copy_ops ? OWNER_COPIES : 0) | (attr->ops->persist ? OWNER_PERSISTS : 0) |
	       (attr->ops->page_list ? OWNER_LISTS : 0);
}

static void record_state(struct urxe_dev *dev, uint8_t *state, size_t length)
{
	struct state_stream *s = record_begin(dev, RECORD_STATE);
	uint32_t version = URXE_RECORD_VERSION;
	uint32_t owner = owner_bits(&dev->attr);
	uint64_t now = dev->now;

	state_u32(s, &version);
	state_u64(s, &now);
	state_u32(s, &owner);
	state_bytes(s, state, length);
	record_end(dev);
}

static void record_timers(struct urxe_dev *dev)
{
	struct state_stream *s = record_begin(dev, RECORD_TIMERS);
	struct timers_place place = {0};
	uint32_t room = dev->timers.room;
	struct timers_entry entry;

	state_u32(s, &room);
	while (timers_place(&dev->timers, &place, &entry)) {
		struct record_timer fields = {.number = (uint8_t)place.number,
					      .queued = entry.queued};

		if (entry.timer) {
			fields.qpn = qp_of_timer(entry.timer)->qpn;
			fields.kind = entry.timer->kind;
		}
		timer_fields(s, &fields);
	}
	record_end(dev);
}

int urxe_record_start(struct urxe_dev *dev, uint64_t now, const struct urxe_recorder *recorder)
{
	const struct urxe_state_save how = {.tag = context_tag};
	uint8_t *state;
	size_t length;
	int rc;

	urxe_record_stop(dev);
	if (dev->offload)
		return -EOPNOTSUPP;
	rc = urxe_state_save(dev, now, &how, &state, &length);
	if (rc)
		return rc;
	dev->recording = calloc(1, sizeof(*dev->recording));
	if (dev->recording) {
		dev->recording->to = *recorder;
		dev->recording->stream.version = URXE_STATE_VERSION;
		record_state(dev, state, length);
		if (dev->recording)
			record_timers(dev);
		if (dev->gso)
			RECORD_ENTRY(dev, SET_GSO, .flag = true);
		rc = dev->recording ? 0 : -EFBIG;
	} else {
		rc = -ENOMEM;
	}
	urxe_state_free(state);
	return rc;
}
