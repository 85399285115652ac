/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linearizability of atomics on shared words (Herlihy, Wing 1990). The words only grow: each
 * operation adds a positive amount, or fails and adds nothing. So the returned values show the
 * order of the operations. One pass over this order checks that each operation found the sum of
 * those before it, and that no operation follows one that was posted after its completion.
 */
#include "sim/check/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

void check_atomics_note(struct stream *stream, uint32_t index, uint64_t original)
{
	const struct outstanding *out = stream_out(stream, index);
	struct world *world = stream->world;
	const bool failed =
		stream->request[index].opcode == URXE_WR_COMPARE_SWAP && original != out->compare;

	if (world->n_atomics == world->atomics_room) {
		world->atomics_room = world->atomics_room ? 2 * world->atomics_room : 64;
		world->atomics =
			sim_realloc(world->atomics, world->atomics_room * sizeof(*world->atomics));
	}
	world->atomics[world->n_atomics++] = (struct atomic_op){
		.host = stream_to(stream)->host->id,
		.from = stream_from(stream)->qpn,
		.original = original,
		.add = failed ? 0 : out->add,
		.posted = out->posted,
		.completed = world->now,
	};
	stream->last_shared = original + (failed ? 0 : out->add);
}

static int compare_atomics(const void *a, const void *b)
{
	const struct atomic_op *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->original != y->original)
		return x->original < y->original ? -1 : 1;
	/* Operations that fail leave the value as they found it, so of those that found one value
	 * the failed ones come before the one that adds. */
	if (!x->add != !y->add)
		return x->add ? 1 : -1;
	return x->posted < y->posted ? -1 : x->posted > y->posted;
}

static void check_final_value(struct world *world, uint32_t host, uint64_t value)
{
	uint64_t word;

	memcpy(&word, world->host[host].mem + world->host[host].shared_word, 8);
	if (word != value)
		world_fail(world, "host %u: the shared word holds %" PRIu64 ", not %" PRIu64, host,
			   word, value);
}

/*
 * Checks that the atomics on the first word of `ops` returned the values that some order of
 * execution gives, and that the word holds the final value. Returns the number of operations on
 * that word.
 */
static uint32_t check_word(struct world *world, const struct atomic_op *ops, uint32_t n)
{
	uint64_t value = 0, posted = 0;
	uint32_t i;

	for (i = 0; i < n && ops[i].host == ops[0].host; i++) {
		if (ops[i].original != value)
			world_fail(world,
				   "host %u: an atomic of qp %06x found %" PRIu64
				   ", but earlier atomics result in %" PRIu64,
				   ops[i].host, ops[i].from, ops[i].original, value);
		if (ops[i].completed < posted)
			world_fail(
				world,
				"host %u: an atomic of qp %06x was complete before an atomic was "
				"posted whose result it saw",
				ops[i].host, ops[i].from);
		if (ops[i].posted > posted)
			posted = ops[i].posted;
		value += ops[i].add;
	}
	check_final_value(world, ops[0].host, value);
	return i;
}

void check_atomics(struct world *world)
{
	if (!world->n_atomics)
		return;
	qsort(world->atomics, world->n_atomics, sizeof(*world->atomics), compare_atomics);
	for (uint32_t i = 0; i < world->n_atomics;)
		i += check_word(world, &world->atomics[i], world->n_atomics - i);
}
