/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A bed (hca_bed.h), one side of which leaves its HCA while the other one goes on. */
#ifndef URXE_TEST_TAKE_OVER_BED_H
#define URXE_TEST_TAKE_OVER_BED_H

#include <errno.h>

#include "hca_bed.h"
#include "move.h"

/* Packets arrive each microsecond. */
#define STEP 250u

static inline struct urxe_dev *device(const struct bed *bed, unsigned side)
{
	return bed->above.node[side]->dev;
}

/* Runs the wire, and passes completions of HCAs on meanwhile. */
static inline void run_for(struct bed *bed, uint64_t ns)
{
	const uint64_t until = bed->wire->now + ns;

	while (bed->wire->now < until) {
		const uint64_t next = bed->wire->now + STEP;

		for (unsigned side = 0; side < 2; side++)
			if (bed->offloaded[side])
				hand_over(bed, side);
		if (pair_run(bed->wire, next) == PAIR_IDLE)
			bed->wire->now = next;
		for (unsigned side = 0; side < 2; side++)
			if (bed->offloaded[side])
				engine_hca_deliver(&bed->hca[side]);
	}
	bed->above.now = bed->wire->now;
}

static inline int try_take_over(struct bed *bed, unsigned side,
				struct urxe_offload_refusal *refusal)
{
	int rc = -EAGAIN;

	for (unsigned tries = 0; rc == -EAGAIN && tries < 100000; tries++) {
		rc = urxe_offload_take_over(device(bed, side), bed->wire->now, true, refusal);
		if (rc == -EAGAIN)
			run_for(bed, STEP);
	}
	return rc;
}

/* The HCA is removed, and the device that had it is on the wire. */
static inline void leave_hca(struct bed *bed, unsigned side)
{
	urxe_offload_unset(device(bed, side));
	node_destroy(bed->wire->node[side]);
	bed->wire->node[side] = bed->above.node[side];
	bed->offloaded[side] = false;
}

static inline void take_over(struct bed *bed, unsigned side)
{
	struct urxe_offload_refusal refusal;

	assert_int_equal(try_take_over(bed, side, &refusal), 0);
	assert_false(urxe_qp_offloaded(bed->e.end[side].qp));
	assert_int_equal(bed->above.node[side]->async[URXE_ASYNC_QP_FATAL], 0);
	leave_hca(bed, side);
}

/* Saves the device, and restores it on another engine. */
static inline void move(struct bed *bed, unsigned side)
{
	struct endpoint *end = &bed->e.end[side];

	move_node(bed->wire, side, &end, 1);
}

#endif
