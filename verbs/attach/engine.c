/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creates the engine, and answers its calls (struct urxe_ops). */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "attach/attach_private.h"
#include "daemon/port_attributes.h"
#include "engine/clock.h"
#include "engine/crc.h"
#include "memory/sigbus_guard.h"
#include "objects/uverbs_file.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include <samehost/peer.h>
#include <session/env.h>

static void refill_receives(void *ctx)
{
	struct object *object = ctx;

	recv_queue_refill(object->type == OBJECT_SRQ ? &((struct srq *)object)->recv
						     : &((struct qp *)object)->recv);
}

/* urxe_ops.recv_retired: the HCA has consumed receive requests of an SRQ for a queue pair that is
 * gone. No completion tells the program, so this function releases their ring slots. */
static void release_receives(void *ctx)
{
	struct recv_queue *recv = &((struct srq *)ctx)->recv;

	work_queue_release(&recv->wq, urxe_rq_retired(recv->rq));
}

/* The counter of asynchronous events about the object, without lost ones. */
static uint32_t *async_events_of(struct object *object)
{
	switch (object->type) {
	case OBJECT_QP: return &((struct qp *)object)->async_events;
	case OBJECT_CQ: return &((struct cq *)object)->async_events;
	default: return &((struct srq *)object)->async_events;
	}
}

static void async_event(void *dev_ctx, enum urxe_async event, void *ctx)
{
	struct object *object = ctx;

	(void)dev_ctx;
	if (object->type == OBJECT_QP)
		qp_failed((struct qp *)object);
	*async_events_of(object) += uverbs_object_event(object, event);
}

static bool may_reference(void *dev_ctx, const struct urxe_path *path, uint32_t qpn)
{
	(void)dev_ctx;
	return tx_may_reference(&adapter.tx, path->dmac, qpn);
}

static bool path_cut(void *dev_ctx, const struct urxe_path *path)
{
	(void)dev_ctx;
	return adapter.reconnecting && !tx_by_uplink(&adapter.tx, path->dmac);
}

/* --- Page faults. */

/* Page faults of this thread so far. */
static uint64_t count_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)(usage.ru_minflt + usage.ru_majflt);
}

/*
 * urxe_ops.guard: makes the access by sigbus_guard_run(). If the process has on-demand regions,
 * counts page faults; registration populates all other regions. The count takes two system calls
 * for each access, because only the kernel knows whether a page was missing; a fault takes longer.
 */
static bool guard(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
		  void *arg)
{
	uint64_t before;
	bool done;

	if (__builtin_expect(!adapter.on_demand_mrs, 1))
		return sigbus_guard_run(dev_ctx, bytes, touch, arg);
	before = count_faults();
	done = sigbus_guard_run(dev_ctx, bytes, touch, arg);
	adapter.page_faults += count_faults() - before;
	return done;
}

/* urxe_copy_ops.copy: copies by peers_copy_ops.copy. With on-demand regions, counts page faults,
 * also those in the peer's memory: the kernel counts all faults of a copy at the calling thread. */
static uint32_t copy(void *ctx, const struct urxe_copy_job *job)
{
	uint64_t before = adapter.on_demand_mrs ? count_faults() : 0;
	uint32_t n = peers_copy_ops.copy(ctx, job);

	if (adapter.on_demand_mrs)
		adapter.page_faults += count_faults() - before;
	return n;
}

static bool pull(void *dev_ctx, const struct urxe_reference *reference,
		 const struct urxe_extent *to, uint32_t n)
{
	uint64_t before = adapter.on_demand_mrs ? count_faults() : 0;
	bool pulled = peer_pull(dev_ctx, reference, to, n);

	if (adapter.on_demand_mrs)
		adapter.page_faults += count_faults() - before;
	return pulled;
}

static const struct urxe_ops ops = {
	.complete = cq_add,
	.send_retired = qp_send_retired,
	.recv_retired = release_receives,
	.comp_event = cq_comp_event,
	.refill = refill_receives,
	.async_event = async_event,
	.guard = guard,
	.may_reference = may_reference,
	.pull = pull,
	.path_cut = path_cut,
};

static uint64_t random_seed(void)
{
	uint64_t seed;

	/* Early at boot getrandom() fails. Keys can be guessed then, but they work. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = clock_now();
	return seed;
}

static enum urxe_congestion chosen_congestion(void)
{
	const char *name = env_get("CONGESTION");

	return name && !strcmp(name, "none") ? URXE_CONGESTION_NONE : URXE_CONGESTION_DCQCN;
}

static struct urxe_copy_ops copy_ops;

static void set_copy_ops(struct urxe_dev_attr *attr, struct urxe_copy_table *table)
{
	attr->ops = &ops;
	copy_ops = peers_copy_ops;
	copy_ops.copy = copy;
	attr->copy_ops = table ? &copy_ops : NULL;
	attr->copy_ctx = &adapter_peers;
	attr->copy_table = table;
}

int adapter_make_engine(struct urxe_copy_table *table)
{
	struct urxe_dev_attr attr = {
		.mac = {adapter.welcome.mac[0], adapter.welcome.mac[1], adapter.welcome.mac[2],
			adapter.welcome.mac[3], adapter.welcome.mac[4], adapter.welcome.mac[5]},
		.mtu = adapter.welcome.mtu,
		.seed = random_seed(),
		.congestion = chosen_congestion(),
		/* 10 ms, not the default of 20 us: while no thread polls, the engine thread wakes
		 * up for each such deadline, and each packet sets one. */
		.probe_ns = 10000000,
		.omit_local_icrc = true,
	};
	int rc;

	set_copy_ops(&attr, table);
	rc = urxe_dev_create(&attr, &adapter.dev);
	return rc ? rc : port_set_attributes();
}

int adapter_restore_engine(const struct adapter_saved *saved, struct urxe_copy_table *table)
{
	struct urxe_state_attr state;
	int rc = urxe_state_read_attr(saved->engine, saved->engine_length, &state);

	if (rc)
		return rc;
	if (memcmp(state.attr.mac, adapter.welcome.mac, sizeof(state.attr.mac)))
		return -EADDRNOTAVAIL;
	set_copy_ops(&state.attr, table);
	return urxe_state_restore(&state.attr, clock_now(), saved->how, saved->engine,
				  saved->engine_length, &adapter.dev);
}
