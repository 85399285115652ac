/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pvrdma.h"

#include <errno.h>
#include <stdlib.h>

#include "activate.h"
#include "doorbell_page.h"
#include "frames.h"
#include "memory/pvrdma_mr.h"
#include "object.h"
#include "pvrdma_device.h"
#include "pvrdma_hca.h"
#include "pvrdma_port.h"
#include "queues/event_ring.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_recv_queue.h"
#include "shared_region.h"

/*
 * Shortest silence of a peer before the requester probes it (urxe_dev_attr.probe_ns), ns. The
 * engine's default of 20 us is too short: a peer may be a device process that waits for a
 * processor, and its last acknowledgement does not tell how long the next one takes. A probe in
 * vain costs more than its packet, because SENDs then have their payload in packets for a while.
 */
#define PROBE_NS 10000000u
/* After this time the device looks whether the driver has made room in the rings of notifications
 * and events. */
#define NOTIFY_AGAIN_NS 1000000u

static void on_async_event(void *dev_ctx, enum urxe_async event, void *ctx)
{
	struct pv_object *object = ctx;

	(void)dev_ctx;
	if (object->kind == PV_CQ) {
		pv_cq_report_failure((struct pv_cq *)object);
		return;
	}
	if (object->kind == PV_QP)
		((struct pv_qp *)object)->events++;
	pv_event_report(object, event);
}

/* urxe_ops.guard: calls touch(), and returns whether no page of the bytes is lost. Needs no guard
 * against faults: an access to a lost page of guest memory reads zeros. */
static bool guard_access(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
			 void *arg)
{
	const struct pvrdma *dev = dev_ctx;

	touch(arg);
	return vnic_guest_memory_is_intact(dev->attr.memory, bytes->addr, bytes->length);
}

static void note_written(void *ctx, const struct urxe_extent *bytes)
{
	vnic_dirty_mark(((struct pvrdma *)ctx)->log, bytes->addr, bytes->length);
}

static bool may_reference(void *ctx, const struct urxe_path *path, uint32_t qpn)
{
	const struct pvrdma_owner *owner = ((struct pvrdma *)ctx)->attr.owner;

	return owner->may_reference(owner->ctx, path->dmac, qpn);
}

static bool pull_payload(void *ctx, const struct urxe_reference *reference,
			 const struct urxe_extent *to, uint32_t n)
{
	const struct pvrdma_owner *owner = ((struct pvrdma *)ctx)->attr.owner;

	/* Marks all parts as changed before the pull: a pull that fails may have written some. */
	for (uint32_t i = 0; i < n; i++)
		note_written(ctx, &to[i]);
	return owner->pull(owner->ctx, reference, to, n);
}

static void set_ops(struct pvrdma *dev)
{
	const struct pvrdma_owner *owner = dev->attr.owner;

	dev->ops = (struct urxe_ops){
		.complete = pv_cq_complete,
		.comp_event = pv_cq_comp_event,
		.refill = pv_recv_queue_on_refill,
		.async_event = on_async_event,
		.page_list = pv_mr_page_list,
		.guard = guard_access,
		.written = note_written,
	};
	if (owner && owner->table && owner->pull) {
		dev->ops.may_reference = may_reference;
		dev->ops.pull = pull_payload;
	}
}

void pv_set_engine_owner(struct pvrdma *dev, struct urxe_dev_attr *attr)
{
	static const struct pvrdma_owner nothing;
	const struct pvrdma_owner *owner = dev->attr.owner ? dev->attr.owner : &nothing;

	attr->ctx = dev;
	attr->ops = &dev->ops;
	attr->mtu = dev->attr.mtu;
	attr->copy_ops = owner->table ? owner->copy_ops : NULL;
	attr->copy_ctx = owner->copy_ctx;
	attr->copy_table = owner->table;
}

int pv_activate(struct pvrdma *dev)
{
	struct urxe_dev_attr attr = {
		.mac = {dev->attr.mac[0], dev->attr.mac[1], dev->attr.mac[2], dev->attr.mac[3],
			dev->attr.mac[4], dev->attr.mac[5]},
		.seed = dev->attr.seed + dev->activations,
		.omit_local_icrc = true,
		.probe_ns = PROBE_NS,
	};
	int rc;

	if (dev->active)
		return 0;
	if (!dev->slots.loaded)
		return -EINVAL;
	pv_set_engine_owner(dev, &attr);
	rc = urxe_dev_create(&attr, &dev->engine);
	if (rc)
		return rc;
	dev->active = true;
	dev->believed_down = !dev->link_up;
	dev->activations++;
	pv_hca_attach(dev);
	return 0;
}

struct urxe_dev *pvrdma_engine(struct pvrdma *dev)
{
	return dev->engine;
}

bool pvrdma_may_grant(const struct pvrdma *dev)
{
	return dev->active && !dev->no_master && !dev->paused;
}

int pvrdma_create(const struct pvrdma_attr *attr, struct pvrdma **out)
{
	struct pvrdma *dev;

	if (!urxe_max_path_mtu(attr->mtu))
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->attr = *attr;
	dev->log = vnic_guest_memory_log(attr->memory);
	set_ops(dev);
	dev->link_up = true;
	dev->uar_pages = 1;
	dev->imr = UINT32_MAX;
	TAILQ_INIT(&dev->notify_cqs);
	TAILQ_INIT(&dev->event_objects);
	TAILQ_INIT(&dev->waiting_qps);
	TAILQ_INIT(&dev->unprepared_qps);
	TAILQ_INIT(&dev->polled_qps);
	STAILQ_INIT(&dev->staged);
	pv_objects_init(dev);
	*out = dev;
	return 0;
}

void pvrdma_reset(struct pvrdma *dev)
{
	pv_doorbell_pages_clear(dev);
	pv_reset_quietly(dev);
}

void pv_reset_quietly(struct pvrdma *dev)
{
	dev->command_deferred = false;
	if (dev->active) {
		pv_objects_close(dev);
		pv_hca_detach(dev);
		urxe_dev_destroy(dev->engine);
	}
	pv_shared_region_unload(dev);
	pv_doorbell_pages_forget(dev);
	dev->engine = NULL;
	dev->active = false;
	dev->dsr_low = dev->err = dev->icr = dev->masked_causes = 0;
	dev->imr = UINT32_MAX;
	dev->gids = 0;
	dev->believed_down = dev->paused = dev->recvs_behind = false;
	dev->report_link_at = 0;
}

void pvrdma_destroy(struct pvrdma *dev)
{
	if (!dev)
		return;
	pv_reset_quietly(dev);
	pv_frames_drop(dev);
	free(dev);
}

void pv_pass_time(struct pvrdma *dev, uint64_t now)
{
	if (now > dev->now)
		dev->now = now;
}

bool pvrdma_active(const struct pvrdma *dev)
{
	return dev->active;
}

uint64_t pvrdma_next_deadline(const struct pvrdma *dev)
{
	uint64_t deadline;

	if (dev->n_staged)
		return 0;
	if (!dev->active || dev->no_master)
		return URXE_NEVER;
	deadline = urxe_next_deadline(dev->engine);
	if ((!TAILQ_EMPTY(&dev->notify_cqs) || !TAILQ_EMPTY(&dev->event_objects)) &&
	    deadline > dev->now + NOTIFY_AGAIN_NS)
		deadline = dev->now + NOTIFY_AGAIN_NS;
	if (dev->report_link_at > dev->now && dev->believed_down == dev->link_up &&
	    deadline > dev->report_link_at)
		deadline = dev->report_link_at;
	return deadline;
}

static void raise_if_due(struct pvrdma *dev, struct pv_event_ring *events, enum pv_vector vector)
{
	if (!events->due)
		return;
	events->due = false;
	pv_raise(dev, vector);
}

void pvrdma_flush(struct pvrdma *dev)
{
	if (dev->no_master)
		return;
	pv_cq_notify_due(dev);
	pv_event_report_due(dev);
	raise_if_due(dev, &dev->async, PV_VECTOR_ASYNC);
	raise_if_due(dev, &dev->cq_notify, PV_VECTOR_CQ);
}

bool pvrdma_poll(struct pvrdma *dev, uint64_t now)
{
	bool some;

	pv_pass_time(dev, now);
	if (dev->no_master)
		return false;
	some = pv_port_report_link(dev);
	some |= pv_doorbell_pages_look(dev);
	return pv_qp_poll(dev) || some;
}

const char *pvrdma_counter_name(enum pvrdma_counter counter)
{
#define COUNTER_NAME(id, name, text) [PVRDMA_##id] = name,
	static const char *const names[] = {PVRDMA_COUNTER_LIST(COUNTER_NAME)};

	return names[counter];
}

const uint64_t *pvrdma_counters(const struct pvrdma *dev)
{
	return dev->counters;
}

const struct urxe_counters *pvrdma_engine_counters(const struct pvrdma *dev)
{
	static const struct urxe_counters none;

	return dev->engine ? urxe_dev_counters(dev->engine) : &none;
}

const struct urxe_qp *pvrdma_next_qp(const struct pvrdma *dev, uint32_t *at)
{
	const struct pv_qp *qp = pv_object_next(dev, PV_QP, at);

	return qp ? qp->qp : NULL;
}

const struct urxe_mr *pvrdma_next_mr(const struct pvrdma *dev, uint32_t *at)
{
	const struct urxe_mr *region = NULL;
	const struct pv_mr *mr;

	while (!region && (mr = pv_object_next(dev, PV_MR, at)))
		region = pv_mr_region(mr);
	return region;
}
