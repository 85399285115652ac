/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check/check.h"

#include <inttypes.h>

#include "sim/host/simconn.h"
#include "sim/world.h"

static void check_equal(struct world *world, const char *what, uint64_t counted, uint64_t carried)
{
	if (counted != carried)
		world_fail(world, "hosts counted %" PRIu64 " %s, the network %" PRIu64, counted,
			   what, carried);
}

static void check_at_most(struct world *world, const char *what, uint64_t received, uint64_t sent)
{
	if (received > sent + world->fabric.counters.duplicated)
		world_fail(world, "hosts received %" PRIu64 " %s and sent %" PRIu64, received, what,
			   sent);
}

/* Whether engines may drop packets for this reason even if the network disturbs no frame. */
static bool may_drop(const struct urxe_counters *sum, enum urxe_drop drop)
{
	switch (drop) {
	case URXE_DROP_NO_RECV:
	case URXE_DROP_UC_SEQUENCE:
		return true; /* checked by unreliable.c */
	/* An ACK that only grants credits has the PSN of the last ACK. If the responder has
	 * answered a READ or atomic since, that PSN is old. */
	case URXE_DROP_STALE_ACK: return true;
	/* The switch sends multicast frames to all hosts; multicast.c checks the deliveries. */
	case URXE_DROP_NO_GROUP:
	case URXE_DROP_OWN_MULTICAST: return true;
	case URXE_DROP_OUT_OF_SEQUENCE:
	case URXE_DROP_DUPLICATE: return sum->event[URXE_EVENT_NAK_RNR_SENT];
	default: return false;
	}
}

/* Checks that no engine drops or repeats a packet, on a network that loses, duplicates and delays
 * none. */
static void check_undisturbed(struct world *world, const struct urxe_counters *sum)
{
	static const enum urxe_event none[] = {URXE_EVENT_TIMEOUT, URXE_EVENT_NAK_SEQ_SENT,
					       URXE_EVENT_IMPLIED_NAK, URXE_EVENT_DUP_REQUEST,
					       URXE_EVENT_RETRANSMIT};

	for (enum urxe_drop i = 1; i < URXE_DROP_COUNT; i++)
		if (sum->drop[i] && !may_drop(sum, i))
			world_fail(world,
				   "a perfect network, but %" PRIu64 " packets dropped as %s",
				   sum->drop[i], urxe_drop_name(i));
	if (sum->event[URXE_EVENT_NAK_RNR_SENT])
		return;
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (sum->event[none[i]])
			world_fail(world, "a perfect network, but %" PRIu64 " %s",
				   sum->event[none[i]], urxe_event_name(none[i]));
}

static uint32_t count_mistaken_keys(const struct world *world)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < world->n_conns; i++)
		n += world->conn[i].failure.begun && world->conn[i].failure.kind == FAILURE_KEY;
	return n;
}

void check_counters(struct world *world)
{
	const struct fabric_counters *f = &world->fabric.counters;
	struct urxe_counters sum;
	uint64_t dropped = 0, fatal;

	world_sum_counters(world, &sum);
	for (unsigned i = 0; i < URXE_DROP_COUNT; i++)
		dropped += sum.drop[i];
	check_equal(world, "frames sent", sum.event[URXE_EVENT_TX_PACKETS], f->sent);
	check_equal(world, "bytes sent", sum.event[URXE_EVENT_TX_BYTES], f->bytes);
	check_equal(world, "frames delivered", world->received + world->migrate.missed,
		    f->sent + f->copies + f->duplicated - f->lost - f->tail_drops);
	/* A packet that the engine accepts first and drops later counts as both. */
	if (sum.event[URXE_EVENT_RX_PACKETS] > world->received ||
	    sum.event[URXE_EVENT_RX_PACKETS] + dropped < world->received)
		world_fail(world,
			   "%" PRIu64 " frames arrived: %" PRIu64 " accepted, %" PRIu64 " dropped",
			   world->received, sum.event[URXE_EVENT_RX_PACKETS], dropped);
	check_at_most(world, "sequence NAKs", sum.event[URXE_EVENT_NAK_SEQ_RCVD],
		      sum.event[URXE_EVENT_NAK_SEQ_SENT]);
	check_at_most(world, "RNR NAKs", sum.event[URXE_EVENT_NAK_RNR_RCVD],
		      sum.event[URXE_EVENT_NAK_RNR_SENT]);
	fatal = sum.event[URXE_EVENT_NAK_INVALID_SENT] + sum.event[URXE_EVENT_NAK_ACCESS_SENT] +
		sum.event[URXE_EVENT_NAK_OP_SENT];
	if (fatal > count_mistaken_keys(world))
		world_fail(world, "%" PRIu64 " fatal NAKs", fatal);
	if (world->undisturbed && !world->scenario.failures)
		check_undisturbed(world, &sum);
}
