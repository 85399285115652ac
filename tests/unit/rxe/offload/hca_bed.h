/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two devices on a wire, each of which may have an HCA. The HCA is the engine of the wire's node;
 * the device above it is the one that a program uses.
 */
#ifndef URXE_TEST_HCA_BED_H
#define URXE_TEST_HCA_BED_H

#include "../engine.h"
#include "engine_hca.h"

enum way { ENGINE, HCA, MIXED, WAYS };

/* Send requests that a queue pair of the HCA takes: fewer than the program's queue has. */
#define HCA_ROOM 3

struct bed {
	struct engine e; /* the devices that the program uses */
	struct pair *wire;
	struct pair above;
	struct engine_hca hca[2];
	bool offloaded[2];
	char log[16384]; /* of a test: what the program has seen */
	size_t logged;
};

/* --- Devices. */

static inline struct node *open_above(struct bed *bed, unsigned side)
{
	const struct node_attr attr = {.id = (uint8_t)(side + 1), .seed = 77 + side};
	struct node *node = node_create(&attr);

	bed->hca[side] = (struct engine_hca){.wire = bed->wire,
					     .node = bed->wire->node[side],
					     .above = node->dev,
					     .room = HCA_ROOM};
	assert_int_equal(urxe_mr_dereg(node->mr), 0);
	urxe_offload_set(node->dev, &engine_hca_ops, &bed->hca[side]);
	node->mr = node_reg(node, NODE_PD, NODE_ACCESS, 0, node->mem_size);
	node->key = urxe_mr_key(node->mr);
	return node;
}

static inline void bed_open_sides(struct bed *bed, bool first, bool second,
				  const struct pair_attr *wire)
{
	memset(bed, 0, sizeof(*bed));
	bed->wire = pair_create(wire);
	bed->above.now = 1;
	bed->offloaded[0] = first;
	bed->offloaded[1] = second;
	for (unsigned side = 0; side < 2; side++)
		bed->above.node[side] =
			bed->offloaded[side] ? open_above(bed, side) : bed->wire->node[side];
	bed->e = (struct engine){
		.pair = &bed->above, .a = bed->above.node[0], .b = bed->above.node[1]};
}

static inline void bed_open(struct bed *bed, enum way way)
{
	bed_open_sides(bed, way != ENGINE, way == HCA, &(struct pair_attr){.seed = 1});
}

static inline void bed_close(struct bed *bed)
{
	for (unsigned side = 0; side < 2; side++)
		if (bed->offloaded[side])
			node_destroy(bed->above.node[side]);
	pair_destroy(bed->wire);
}

/* The device above sends nothing itself. */
static inline void hand_over(struct bed *bed, unsigned side)
{
	struct urxe_frame frame = {.data = bed->wire->frames, .room = bed->wire->frame_room};

	assert_int_equal(urxe_output(bed->above.node[side]->dev, bed->wire->now, &frame, 1), 0);
}

static inline void settle(struct bed *bed)
{
	bool any;

	do {
		any = false;
		for (unsigned side = 0; side < 2; side++)
			if (bed->offloaded[side])
				hand_over(bed, side);
		pair_settle(bed->wire);
		for (unsigned side = 0; side < 2; side++)
			if (bed->offloaded[side])
				any |= engine_hca_deliver(&bed->hca[side]);
	} while (any);
	bed->above.now = bed->wire->now;
}

#endif
