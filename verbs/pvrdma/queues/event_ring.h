/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The two rings by which the device tells the driver of asynchronous events, and of completions in
 * CQs. */
#ifndef URXE_PVRDMA_EVENT_RING_H
#define URXE_PVRDMA_EVENT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "memory/guest_ring.h"

struct pvrdma;
struct pv_object;

struct pv_event_ring {
	struct pv_ring ring;
	struct pv_pages pages; /* none: no ring */
	bool due;              /* elements were added since the last interrupt */
};

/* The largest number of pages of a ring, with its header page. */
#define PV_EVENT_RING_PAGES 64u

/* Opens the ring that the driver describes by *info. `element`: bytes of an element. 0; -EINVAL:
 * too few or too many pages; or an error of pv_pages_open. */
int pv_event_ring_open(struct pvrdma *dev, struct pv_event_ring *events,
		       const struct pv_ring_page_info *info, uint32_t element);
/* Sets events->ring for events->pages; the device's index is 0. Does not access guest memory. */
void pv_event_ring_lay_out(struct pvrdma *dev, struct pv_event_ring *events, uint32_t element);
void pv_event_ring_close(struct pv_event_ring *events);

/*
 * Add an asynchronous event to its ring; `type` is a value of enum ibv_event_type. If the ring has
 * no room, is gone, or the device may not access it, the event of a port is lost and counted. The
 * event of an object stays due until the ring takes it; further events of the same type and object
 * are dropped meanwhile. While the device is paused, events of objects only become due.
 */
void pv_event_report_port(struct pvrdma *dev, uint32_t type);
void pv_event_report(struct pv_object *object, uint32_t type);
/* Adds the due events of all objects, as far as the ring takes them. If the ring's memory is gone,
 * the events are lost and counted. */
void pv_event_report_due(struct pvrdma *dev);
/* Adds the handle of a CQ to the ring of notifications. False: the ring has no room now, is
 * unusable, or the device may not access it. */
bool pv_event_notify(struct pvrdma *dev, uint32_t handle);

#endif
