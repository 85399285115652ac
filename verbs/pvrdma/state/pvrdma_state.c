/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Saves a paused device as a stream, and restores a device from it: pvrdma_save and pvrdma_restore.
 */
#include <stdlib.h>

#include "activate.h"
#include "doorbell_page.h"
#include "gid_vlan.h"
#include "object.h"
#include "pvrdma_hca.h"
#include "pvrdma_port.h"
#include "queues/pvrdma_qp.h"
#include "shared_region.h"
#include "state/pvrdma_records.h"

static const struct state_format format = {.name = "urxepvrd", .version = 1};

void pvrdma_pause(struct pvrdma *dev, uint64_t now)
{
	pv_pass_time(dev, now);
	dev->paused = true;
	if (!dev->active || dev->no_master)
		return;
	pv_doorbell_pages_finish(dev);
	pv_hca_detach(dev);
	pvrdma_flush(dev);
	urxe_copy_rights_withdraw(dev->engine);
}

void pvrdma_resume(struct pvrdma *dev, uint64_t now)
{
	pv_pass_time(dev, now);
	dev->paused = false;
	/* A doorbell may have been lost: the saved device may have had doorbells in memory, where a
	 * later one replaces an earlier one. */
	dev->polls_all = true;
	/*
	 * In a restored device: the saved device has raised these interrupts, but they may not have
	 * reached the guest.
	 */
	pv_raise_unread(dev);
	/* The driver may have written UNQUIESCE just before the pause, and its processor may have
	 * stopped since. */
	if (!dev->believed_down)
		pv_port_delay_report(dev);
	pv_qp_fail_due(dev);
	if (!dev->active || dev->no_master)
		return;
	urxe_copy_rights_publish(dev->engine);
	pv_hca_attach(dev);
	pv_port_report_link(dev);
}

int pvrdma_save(struct pvrdma *dev, uint64_t now, uint8_t **stream, size_t *length)
{
	struct pv_state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	pv_pass_time(dev, now);
	st->dev = dev;
	stream_begin_save(&st->stream, &format);
	pv_device_record(st);
	pv_objects_record(st);
	pv_engine_record(st, dev->now);
	rc = stream_finish_save(&st->stream, stream, length);
	free(st);
	return rc;
}

/* --- Restoring */

static uint8_t **pages_of(const struct pv_object *object)
{
	switch (object->kind) {
	case PV_CQ: return ((const struct pv_cq *)object)->pages.page;
	case PV_SRQ: return ((const struct pv_srq *)object)->pages.page;
	case PV_QP: return ((const struct pv_qp *)object)->pages.page;
	default: return NULL;
	}
}

/* Frees all objects, but not the engine's part of them: the device has no engine. */
static void drop_objects(struct pvrdma *dev)
{
	const struct pvrdma_owner *owner = dev->attr.owner;
	struct pv_object *object;

	for (unsigned kind = 0; kind < PV_KINDS; kind++) {
		for (uint32_t at = 0; (object = pv_object_next(dev, kind, &at));) {
			const struct pv_qp *qp = (const struct pv_qp *)object;

			if (kind == PV_QP && qp->qpn_taken)
				owner->free_qpn(owner->ctx, qp->qpn);
			free(pages_of(object));
			free(object);
		}
		pv_handles_free(&dev->objects[kind]);
	}
	TAILQ_INIT(&dev->notify_cqs);
	TAILQ_INIT(&dev->event_objects);
	TAILQ_INIT(&dev->waiting_qps);
	TAILQ_INIT(&dev->unprepared_qps);
	TAILQ_INIT(&dev->polled_qps);
	dev->bytes = 0;
}

static bool has_objects(const struct pvrdma *dev)
{
	for (unsigned kind = 0; kind < PV_KINDS; kind++)
		if (dev->objects[kind].used)
			return true;
	return false;
}

static void read_stream(struct pv_state *st, const uint8_t *stream, size_t length)
{
	if (stream_begin_restore(&st->stream, &format, stream, length))
		return;
	pv_device_record(st);
	pv_objects_record(st);
	pv_engine_record(st, st->dev->now);
	if (!st->stream.error && !st->dev->active)
		state_require(&st->stream, !has_objects(st->dev));
	stream_finish_restore(&st->stream);
}

static void qps_restored(struct pvrdma *dev)
{
	struct pv_qp *qp;
	uint32_t at = 0;

	while ((qp = pv_object_next(dev, PV_QP, &at)))
		pv_qp_restored(qp);
}

int pvrdma_restore(struct pvrdma *dev, uint64_t now, const uint8_t *stream, size_t length)
{
	struct pv_state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	/* The pvrdma_attr.uar of a device that was never active may be the memory of the saved
	 * device, with doorbells of the guest, which must stay. */
	if (dev->active)
		pvrdma_reset(dev);
	else
		pv_reset_quietly(dev);
	pv_pass_time(dev, now);
	dev->paused = true;
	st->dev = dev;
	read_stream(st, stream, length);
	rc = st->stream.error;
	free(st->keys);
	free(st->extents);
	free(st);
	if (rc) {
		if (dev->active)
			urxe_dev_destroy(dev->engine);
		drop_objects(dev);
		dev->active = false;
		pv_reset_quietly(dev);
	} else if (dev->active) {
		/* pvrdma_resume publishes them again, unless the driver permits no access to
		 * memory. */
		urxe_copy_rights_withdraw(dev->engine);
	}
	qps_restored(dev);
	pv_gid_vlan_restore(dev);
	return rc;
}
