/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue of the simulation, a heap ordered by virtual time. Events of one instant are
 * taken in the order in which they were added.
 */
#ifndef URXE_SIM_EVENTS_H
#define URXE_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_WAKE,   /* object: struct simhost, whose engine or application runs */
	EVENT_SWITCH, /* object: struct fabric_frame that arrives at the switch */
	EVENT_ARRIVE, /* object: struct fabric_frame that arrives at its host */
	EVENT_MOVE,   /* object: struct simhost that is frozen, or continues */
};

struct event {
	uint64_t at;     /* ns */
	uint64_t serial; /* serial number, and in the low two bits the enum event_kind */
	void *object;
};

struct events {
	struct event *heap;
	uint64_t serial;
	uint32_t n;
	uint32_t room;
	uint32_t n_frames; /* events that are no EVENT_WAKE: frames in the network, and moves */
};

void events_free(struct events *events);
void events_add(struct events *events, uint64_t at, enum event_kind kind, void *object);
/* Removes the earliest event; false: the queue is empty. */
bool events_pop(struct events *events, struct event *event);

static inline enum event_kind event_kind(const struct event *event)
{
	return (enum event_kind)(event->serial & 3);
}

/* Time of the earliest event; UINT64_MAX = none. */
static inline uint64_t events_next(const struct events *events)
{
	return events->n ? events->heap[0].at : UINT64_MAX;
}

#endif
