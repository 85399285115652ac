/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One direction of a cable in virtual time, with faults from a seed.
 *
 * netdev's fault port is for real programs; here, frames in flight also have to
 * be counted, so that the end of a simulation is known.
 */
#ifndef URXE_TEST_LINK_H
#define URXE_TEST_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rand.h"

#define LINK_LOSSES 4096

struct link_faults {
	double drop;
	double duplicate;
	double reorder;
	double corrupt; /* one bit */
	/*
	 * How often the same packet (QP, PSN, direction) may be lost, 0 = without
	 * end. Lonely requests then never use up their repetitions: up to a loss of
	 * 0.1, a RC connection that fails is the engine's fault.
	 */
	uint8_t max_losses;
};

struct link_frame {
	uint64_t due;
	uint64_t serial; /* frames due at the same time stay in order */
	uint32_t len;
	uint8_t *data;
};

struct link {
	struct link_faults faults;
	struct rand rand;
	uint64_t delay_ns;
	uint64_t reorder_ns; /* a reordered frame comes up to this much later */
	/* Sees each frame first; if it returns false, the frame is lost. */
	bool (*filter)(void *arg, uint64_t now, uint8_t *data, uint32_t len);
	void *filter_arg;
	uint64_t sent, dropped, duplicated, reordered, corrupted;
	uint8_t losses[LINK_LOSSES]; /* losses so far, by a hash of the packet */
	uint64_t serial;
	struct link_frame *heap;
	uint32_t n, room;
};

/* A filter that loses one frame; its argument is a struct link_loss. */
struct link_loss {
	unsigned first; /* number of the frame to lose, from 0 */
	unsigned seen;
};
bool link_lose_one(void *loss, uint64_t now, uint8_t *data, uint32_t len);

void link_init(struct link *link, uint64_t seed);
void link_free(struct link *link);
void link_send(struct link *link, uint64_t now, const uint8_t *data, uint32_t len);
/* The time when the next frame arrives; UINT64_MAX = the link is empty. */
uint64_t link_next(const struct link *link);
/* Takes the next frame that is due; the caller frees its data. */
bool link_recv(struct link *link, uint64_t now, struct link_frame *frame);

#endif
