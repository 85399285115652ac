/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creates the engine, and answers its calls (struct urxe_ops). */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "engine/clock.h"
#include "engine/crc.h"
#include "memory/sigbus_guard.h"
#include "port/port_private.h"
#include "queues/srq.h"
#include <samehost/peer.h>
#include <session/env.h>

static void refill_receives(void *ctx)
{
	struct object *object = ctx;

	recv_queue_refill(object->type == OBJECT_SRQ ? &((struct srq *)object)->recv
						     : &((struct qp *)object)->recv);
}

static void async_event(void *dev_ctx, enum urxe_async event, void *ctx)
{
	struct object *object = ctx;

	(void)dev_ctx;
	if (object->type == OBJECT_QP) {
		((struct qp *)object)->async_events++;
		qp_failed((struct qp *)object);
	} else if (object->type == OBJECT_CQ) {
		((struct cq *)object)->async_events++;
	} else {
		((struct srq *)object)->async_events++;
	}
	uverbs_file_event(object->file, object->user_handle, event);
}

static bool may_reference(void *dev_ctx, const struct urxe_path *path, uint32_t qpn)
{
	(void)dev_ctx;
	return tx_may_reference(&port.tx, path->dmac, qpn);
}

static bool path_cut(void *dev_ctx, const struct urxe_path *path)
{
	(void)dev_ctx;
	return port.reconnect.active && !tx_by_uplink(&port.tx, path->dmac);
}

static const struct urxe_ops ops = {
	.complete = cq_add,
	.comp_event = cq_comp_event,
	.refill = refill_receives,
	.async_event = async_event,
	.guard = sigbus_guard_run,
	.copy_crc = crc_copy,
	.may_reference = may_reference,
	.pull = peer_pull,
	.path_cut = path_cut,
};

static uint64_t random_seed(void)
{
	uint64_t seed;

	/* Early at boot the call fails: then keys can be guessed, but they work. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = clock_now();
	return seed;
}

static enum urxe_congestion chosen_congestion(void)
{
	const char *name = env_get("CONGESTION");

	return name && !strcmp(name, "none") ? URXE_CONGESTION_NONE : URXE_CONGESTION_DCQCN;
}

static void set_direct(struct urxe_dev_attr *attr, struct urxe_direct_table *table)
{
	attr->ops = &ops;
	attr->direct = table ? &peers_direct_ops : NULL;
	attr->direct_ctx = &port_peers;
	attr->direct_table = table;
}

int port_make_engine(struct urxe_direct_table *table)
{
	struct urxe_dev_attr attr = {
		.mac = {port.welcome.mac[0], port.welcome.mac[1], port.welcome.mac[2],
			port.welcome.mac[3], port.welcome.mac[4], port.welcome.mac[5]},
		.mtu = port.welcome.mtu,
		.seed = random_seed(),
		.congestion = chosen_congestion(),
		/* The engine thread wakes for each such deadline while no application polls. */
		.probe_ns = 10000000,
		.omit_local_icrc = true,
	};
	int rc;

	set_direct(&attr, table);
	rc = urxe_dev_create(&attr, &port.dev);
	return rc ? rc : port_set_attributes();
}

int port_restore_engine(const struct port_saved *saved, struct urxe_direct_table *table)
{
	struct urxe_state_attr state;
	int rc = urxe_state_read_attr(saved->engine, saved->engine_length, &state);

	if (rc)
		return rc;
	if (memcmp(state.attr.mac, port.welcome.mac, sizeof(state.attr.mac)))
		return -EADDRNOTAVAIL;
	set_direct(&state.attr, table);
	return urxe_state_restore(&state.attr, clock_now(), saved->how, saved->engine,
				  saved->engine_length, &port.dev);
}
