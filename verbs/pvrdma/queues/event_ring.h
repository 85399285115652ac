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

struct pv_event_ring {
	struct pv_ring ring;
	uint8_t **pages; /* NULL: no ring */
	uint32_t n_pages;
	bool due; /* elements were added since the last interrupt */
};

/* Pages that a ring has at most, with its header. */
#define PV_EVENT_RING_PAGES 64u

/* `element`: bytes of an element. -EINVAL: too few or too many pages; or as pv_page_dir_pages. */
int pv_event_ring_open(struct pvrdma *dev, struct pv_event_ring *events,
		       const struct pv_ring_page_info *info, uint32_t element);
/* Sets events->ring to the pages, as after pv_event_ring_open. */
void pv_event_ring_lay_out(struct pvrdma *dev, struct pv_event_ring *events, uint32_t element);
void pv_event_ring_close(struct pv_event_ring *events);

/* Reports an asynchronous event (values of enum ibv_event_type) of an object or port. False: lost.
 */
bool pv_event_report(struct pvrdma *dev, uint32_t type, uint32_t info);
/* Adds the handle of a CQ to the ring of notifications. False: no room now. */
bool pv_event_notify(struct pvrdma *dev, uint32_t handle);

#endif
