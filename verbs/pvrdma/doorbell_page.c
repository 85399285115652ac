/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "doorbell_page.h"

#include "doorbell.h"
#include "object.h"
#include "pvrdma_device.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_srq.h"

#define UNREAD_PAUSE_MAX_NS (PV_QUIET_NS << 10)

static uint32_t *word_at(const struct pvrdma *dev, uint32_t page, uint32_t offset)
{
	return (uint32_t *)((uint8_t *)dev->attr.uar + (size_t)page * PV_PAGE + offset);
}

/* Takes the doorbell out of a word of the page, and handles it as pv_doorbell() handles a write.
 * Returns the doorbell; 0: the word had none. */
static uint32_t take(struct pvrdma *dev, uint32_t page, uint32_t offset)
{
	uint32_t *word = word_at(dev, page, offset), value;

	/* Loads the word before the exchange: only a store takes the cache line away from the
	 * processor that rings doorbells. */
	if (!__atomic_load_n(word, __ATOMIC_RELAXED))
		return 0;
	value = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
	pv_doorbell(dev, page * PV_PAGE + offset, value);
	return value;
}

static void refill_srqs(struct pvrdma *dev, uint32_t page)
{
	struct pv_srq *srq;
	uint32_t at = 0;

	while ((srq = pv_object_next(dev, PV_SRQ, &at)))
		if (srq->object.uar_page == page)
			pv_srq_refill_used(srq);
}

static void arm_cqs(struct pvrdma *dev, uint32_t page)
{
	struct pv_cq *cq;
	uint32_t at = 0;

	while ((cq = pv_object_next(dev, PV_CQ, &at)))
		if (cq->object.uar_page == page)
			pv_cq_arm(cq, false);
}

/*
 * Notifies the driver of unread completions, once the pause since the last such notification has
 * passed. Each pause is twice as long as the last, up to UNREAD_PAUSE_MAX_NS: a program may read
 * the CQ late and never wait for its events.
 */
static void notify_unread_cq(struct pv_cq *cq, uint64_t now)
{
	if (now < cq->unread_notify_at)
		return;
	if (cq->unread_pause_ns < UNREAD_PAUSE_MAX_NS)
		cq->unread_pause_ns += cq->unread_pause_ns ?: PV_QUIET_NS;
	cq->unread_notify_at = now + cq->unread_pause_ns;
	pv_cq_notify_later(cq);
}

/*
 * Notifies of CQs whose completions the driver leaves unread: a later doorbell may have replaced
 * the ARM of such a CQ. Looks only at CQs of pages that had a CQ doorbell in the last PV_QUIET_NS,
 * and only once in that time. True: a notification is due.
 */
static bool notify_unread_cqs(struct pvrdma *dev)
{
	struct pv_cq *cq;
	uint32_t at = 0;

	if (dev->now - dev->cqs_looked_at < PV_QUIET_NS)
		return false;
	dev->cqs_looked_at = dev->now;
	while ((cq = pv_object_next(dev, PV_CQ, &at)))
		if (dev->cqs_rung_at[cq->object.uar_page] && pv_cq_is_left_unread(cq))
			notify_unread_cq(cq, dev->now);
	return !TAILQ_EMPTY(&dev->notify_cqs);
}

/*
 * Handles the page's CQ doorbell. If the page has none, and the last one is PV_QUIET_NS old, arms
 * all CQs of the page, because the last doorbell may have replaced an ARM. True: the doorbell armed
 * a CQ, or a notification is due.
 */
static bool look_at_cqs(struct pvrdma *dev, uint32_t page)
{
	uint64_t *rung_at = &dev->cqs_rung_at[page];
	const uint32_t value = take(dev, page, PVRDMA_UAR_CQ_OFFSET);

	if (value) {
		*rung_at = dev->now;
		return value & (PV_UAR_CQ_ARM | PV_UAR_CQ_ARM_SOL);
	}
	if (!*rung_at || dev->now - *rung_at < PV_QUIET_NS)
		return false;
	*rung_at = 0;
	arm_cqs(dev, page);
	return !TAILQ_EMPTY(&dev->notify_cqs);
}

static bool look_at_page(struct pvrdma *dev, uint32_t page)
{
	bool found = take(dev, page, PVRDMA_UAR_QP_OFFSET);

	if (take(dev, page, PVRDMA_UAR_SRQ_OFFSET)) {
		refill_srqs(dev, page);
		found = true;
	}
	return look_at_cqs(dev, page) || found;
}

void pv_doorbell_page_use(struct pvrdma *dev, uint32_t page)
{
	if (page >= dev->uar_pages)
		dev->uar_pages = page + 1;
}

bool pv_doorbell_pages_look(struct pvrdma *dev)
{
	bool found = false, rung = false;

	if (!dev->attr.uar || !dev->active)
		return false;
	for (uint32_t page = 0; page < dev->uar_pages; page++) {
		found |= look_at_page(dev, page);
		rung |= dev->cqs_rung_at[page] != 0;
	}
	return (rung && notify_unread_cqs(dev)) || found;
}

void pv_doorbell_pages_finish(struct pvrdma *dev)
{
	if (!dev->attr.uar)
		return;
	pv_doorbell_pages_look(dev);
	for (uint32_t page = 0; page < dev->uar_pages; page++) {
		if (dev->cqs_rung_at[page])
			arm_cqs(dev, page);
		dev->cqs_rung_at[page] = 0;
	}
}

void pv_doorbell_pages_clear(struct pvrdma *dev)
{
	static const uint32_t words[] = {PVRDMA_UAR_QP_OFFSET, PVRDMA_UAR_CQ_OFFSET,
					 PVRDMA_UAR_SRQ_OFFSET};

	for (uint32_t page = 0; dev->attr.uar && page < dev->uar_pages; page++)
		for (unsigned i = 0; i < 3; i++)
			__atomic_store_n(word_at(dev, page, words[i]), 0, __ATOMIC_RELAXED);
}

void pv_doorbell_pages_forget(struct pvrdma *dev)
{
	for (uint32_t page = 0; page < dev->uar_pages; page++)
		dev->cqs_rung_at[page] = 0;
	dev->uar_pages = 1; /* the driver's */
}
