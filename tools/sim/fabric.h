/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The network: every host has a cable to one switch, which queues at its output
 * ports, marks and drops. All cables have the same rate; the way from host to
 * host takes `delay`, half of it on each cable.
 *
 * A queue is drained at a fixed rate, so when a frame leaves it is known when it
 * comes: no event is spent on the queue itself.
 */
#ifndef URXE_SIM_FABRIC_H
#define URXE_SIM_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/events.h"
#include "sim/impair.h"
#include "sim/scenario.h"

#define FABRIC_FRAME_MAX 4300

/* Frames are given back to lists of their size, in steps of this many bytes. */
#define FABRIC_SIZE_STEP 64
#define FABRIC_SIZES     ((FABRIC_FRAME_MAX + 32) / FABRIC_SIZE_STEP + 1)

struct fabric_frame {
	struct fabric_frame *next; /* in its queue, or in the list of free ones */
	uint64_t at;               /* ns; in a queue: when it reaches its host */
	uint32_t to;               /* host */
	uint32_t len;
	uint8_t data[];
};

/* One direction of a cable. */
struct fabric_port {
	uint64_t free; /* ps; when everything in its queue is sent */
};

/* A port of the switch, toward a host. */
struct fabric_queue {
	struct fabric_port port;
	/* What is on its way to the host, in order; of the first there is an EVENT_ARRIVE. */
	struct fabric_frame *first, **last;
	uint64_t max;   /* bytes */
	uint64_t since; /* ps; from when on max, area and the counters count... */
	uint64_t seen;  /* ...and until when area is added up */
	double area;    /* bytes in the queue, times ps */
	uint64_t tail_drops;
	uint64_t marks;
};

struct fabric_counters {
	uint64_t sent, bytes; /* by hosts */
	uint64_t delivered;
	uint64_t lost, tail_drops, duplicated, reordered, corrupted, marked;
};

struct fabric {
	const struct scenario *scenario;
	struct events *events;
	struct impair faults;
	struct rand rand; /* of marks */
	uint64_t delay;   /* ns */
	uint64_t rate;    /* bit/s; 0 = without limit */
	uint32_t n_hosts;
	struct fabric_port *uplinks;
	struct fabric_queue *queues;
	struct fabric_counters counters;
	struct fabric_frame *free_frames[FABRIC_SIZES];
};

void fabric_init(struct fabric *fabric, const struct scenario *scenario, struct events *events,
		 struct rand *rand);
/* First takes the events of frames out. */
void fabric_free(struct fabric *fabric);

/* A host sends a frame; it is copied. */
void fabric_send(struct fabric *fabric, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len);
/* The frame of an EVENT_SWITCH: on to its host, or lost. */
void fabric_switch(struct fabric *fabric, uint64_t now, struct fabric_frame *frame);
/* The frame of an EVENT_ARRIVE is with its host, who has read it. */
void fabric_arrived(struct fabric *fabric, struct fabric_frame *frame);
/* When the host's cable can take the next frame, ns; not in the future: at once. */
uint64_t fabric_uplink_free(const struct fabric *fabric, uint32_t host);
/* Mean length in bytes of a host's queue from the beginning to now. */
double fabric_mean_queue(struct fabric *fabric, uint64_t now, uint32_t host);
/* Starts the figures of the queues again. */
void fabric_reset_queues(struct fabric *fabric, uint64_t now);

#endif
