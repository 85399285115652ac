/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What happens in virtual time, in its order: a heap. Events of one instant keep the order in which
 * they were added. */
#ifndef URXE_SIM_EVENTS_H
#define URXE_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_WAKE,   /* object: struct simhost; its engine or its application wants a turn */
	EVENT_SWITCH, /* object: struct fabric_frame; it has reached the switch */
	EVENT_ARRIVE, /* object: struct fabric_frame; it has reached its host */
};

struct event {
	uint64_t at;    /* ns */
	uint64_t order; /* serial number and, in the low two bits, enum event_kind */
	void *object;
};

struct events {
	struct event *heap;
	uint64_t serial;
	uint32_t n;
	uint32_t room;
	uint32_t n_frames; /* events of frames, which are those on their way */
};

void events_free(struct events *events);
void events_add(struct events *events, uint64_t at, enum event_kind kind, void *object);
/* Takes the first one out; false where there is none. */
bool events_pop(struct events *events, struct event *event);

static inline enum event_kind event_kind(const struct event *event)
{
	return (enum event_kind)(event->order & 3);
}

/* When the next one happens; UINT64_MAX = never. */
static inline uint64_t events_next(const struct events *events)
{
	return events->n ? events->heap[0].at : UINT64_MAX;
}

#endif
