/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulated network: each host has a cable to one switch. The switch queues frames at its
 * output ports, marks them (ECN) and drops them. All cables have the same rate, and a propagation
 * delay of half of `delay`.
 *
 * A queue drains at a fixed rate. So when a frame arrives at the switch, the time at which it
 * leaves is known, and needs no event.
 */
#ifndef URXE_SIM_NETWORK_FABRIC_H
#define URXE_SIM_NETWORK_FABRIC_H

#include <stdint.h>

#include "sim/events.h"
#include "sim/network/impair.h"
#include "sim/scenario/scenario.h"

#define FABRIC_FRAME_MAX 4300

/* Freed frames go to a free list of their size, in steps of this many bytes. */
#define FABRIC_SIZE_STEP 64
#define FABRIC_SIZES     ((FABRIC_FRAME_MAX + 32) / FABRIC_SIZE_STEP + 1)

struct fabric_frame {
	struct fabric_frame *next; /* in a queue or free list */
	uint64_t at;               /* ns; in a queue: arrival at the host */
	uint32_t to;               /* destination host */
	uint32_t len;
	bool corrupted;
	uint8_t data[];
};

/* One direction of a cable. */
struct fabric_port {
	uint64_t free; /* ps; time when all queued frames are sent */
};

/* An output port of the switch, to one host. */
struct fabric_queue {
	struct fabric_port port;
	/* Frames to the host, in order. Only the first one's EVENT_ARRIVE is in the event queue. */
	struct fabric_frame *first, **last;
	uint64_t max;   /* greatest length, bytes */
	uint64_t since; /* ps; time from which on max and area count */
	uint64_t seen;  /* ps; time up to which area is computed */
	double area;    /* integral of the queue's length, bytes times ps */
};

struct fabric_counters {
	uint64_t sent, bytes; /* frames and bytes sent by hosts */
	uint64_t copies;      /* copies of multicast frames that leave the switch, without the
				 first of each */
	uint64_t lost, tail_drops, duplicated, reordered, corrupted, marked;
};

struct fabric {
	const struct scenario *scenario;
	struct events *events;
	struct impair impair;
	struct rand rand; /* for the choice of ECN marks */
	uint64_t delay;   /* ns */
	uint64_t rate;    /* bit/s; 0 = no limit */
	uint32_t n_hosts;
	struct fabric_port *uplinks;
	struct fabric_queue *queues;
	struct fabric_counters counters;
	/* Called with each frame that does not reach a host `to` as it was sent. May be NULL. */
	void (*lost)(void *arg, uint32_t to, const uint8_t *data, uint32_t len);
	void *lost_arg;
	struct fabric_frame *free_frames[FABRIC_SIZES];
};

void fabric_init(struct fabric *fabric, const struct scenario *scenario, struct events *events,
		 struct rand *rand);
/* Removes all events from fabric->events, also those of hosts, and frees all frames and queues. */
void fabric_free(struct fabric *fabric);

/*
 * Sends a copy of a frame of host `from` to the host that has the destination MAC, or of a
 * multicast frame to all other hosts.
 */
void fabric_send(struct fabric *fabric, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len);
/* Handles EVENT_SWITCH: queues the frame at the port of its destination host, or drops it. */
void fabric_switch(struct fabric *fabric, uint64_t now, struct fabric_frame *frame);
/* Handles EVENT_ARRIVE after the host has read the frame: frees the frame. */
void fabric_arrived(struct fabric *fabric, struct fabric_frame *frame);
/* Time in ns from which the cable from the host to the switch is free; may be past. */
uint64_t fabric_uplink_free(const struct fabric *fabric, uint32_t host);
/* Mean length in bytes, over time, of the switch's queue to the host, since fabric_reset_queues. */
double fabric_mean_queue(struct fabric *fabric, uint64_t now, uint32_t host);
/* Resets the statistics of the queues. */
void fabric_reset_queues(struct fabric *fabric, uint64_t now);

#endif
