/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe_state_save. CQs and SRQs are in the order of their creation, QPs, regions and windows in the
 * order of their numbers, not of the device's tables. So a device and its restored copy give equal
 * streams.
 */
#include <errno.h>
#include <stdlib.h>

#include "memory/mr.h"
#include "objects/copy_table.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "objects/multicast.h"
#include "objects/rq.h"
#include "record/recorder.h"
#include "state/state_records.h"

/* --- Lists of objects. */

static uint32_t qp_number(const void *qp)
{
	return ((const struct urxe_qp *)qp)->qpn;
}

static uint32_t mr_number(const void *mr)
{
	return ((const struct urxe_mr *)mr)->key;
}

static uint32_t mw_number(const void *mw)
{
	return ((const struct urxe_mw *)mw)->key;
}

static uint32_t fast_mr_number(const void *fast)
{
	return ((const struct urxe_fast_mr *)fast)->key;
}

/* Restores the heap of n objects below object i: moves the object down until no object below it has
 * a greater number. */
static void sift_down(struct state_list *list, uint32_t i, uint32_t n,
		      uint32_t (*number)(const void *))
{
	void **object = list->object, *moved = object[i];
	uint32_t child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && number(object[child + 1]) > number(object[child]))
			child++;
		if (number(object[child]) <= number(moved))
			break;
		object[i] = object[child];
	}
	object[i] = moved;
}

/* Sorts the objects by number with heapsort, because the engine must not call libc's qsort. */
static void sort(struct state_list *list, uint32_t (*number)(const void *))
{
	for (uint32_t i = list->n / 2; i--;)
		sift_down(list, i, list->n, number);
	for (uint32_t n = list->n; n > 1; n--) {
		void *greatest = list->object[0];

		list->object[0] = list->object[n - 1];
		list->object[n - 1] = greatest;
		sift_down(list, 0, n - 1, number);
	}
}

static void list_map(struct state_device *d, struct state_list *list, const struct idmap *map,
		     uint32_t (*number)(const void *))
{
	uint32_t at = 0;
	void *object;

	while ((object = idmap_next(map, &at)))
		state_list_add(d, list, object);
	sort(list, number);
}

/* Makes the oldest object the first one: the device's list begins with the newest. */
static void reverse(struct state_list *list)
{
	for (uint32_t i = 0; i < list->n / 2; i++) {
		void *object = list->object[i];

		list->object[i] = list->object[list->n - 1 - i];
		list->object[list->n - 1 - i] = object;
	}
}

static void list_cqs(struct state_device *d)
{
	struct urxe_cq *cq;

	LIST_FOREACH(cq, &d->dev->cqs, link)
	{
		state_list_add(d, &d->cqs, cq);
	}
	reverse(&d->cqs);
	for (uint32_t i = 0; i < d->cqs.n; i++)
		((struct urxe_cq *)d->cqs.object[i])->number = i;
}

static void list_srqs(struct state_device *d)
{
	struct urxe_rq *srq;

	LIST_FOREACH(srq, &d->dev->srqs, link)
	{
		state_list_add(d, &d->srqs, srq);
	}
	reverse(&d->srqs);
	for (uint32_t i = 0; i < d->srqs.n; i++)
		((struct urxe_rq *)d->srqs.object[i])->number = i;
}

static void list_objects(struct state_device *d)
{
	list_cqs(d);
	list_srqs(d);
	list_map(d, &d->qps, &d->dev->qps, qp_number);
	list_map(d, &d->mrs, &d->dev->mrs, mr_number);
	list_map(d, &d->mws, &d->dev->mws, mw_number);
	list_map(d, &d->fast_mrs, &d->dev->fast_mrs, fast_mr_number);
}

/* Builds the table of QPs anew, as a restored device builds it. The order in the table depends on
 * its history, and determines the order of completions and events of several QPs. */
static void order_qps(struct state_device *d)
{
	struct idmap ordered = {0};
	int rc = idmap_init(&ordered);

	for (uint32_t i = 0; !rc && i < d->qps.n; i++)
		rc = idmap_add(&ordered, qp_number(d->qps.object[i]), d->qps.object[i]);
	if (rc || !state_ok(&d->stream)) {
		idmap_free(&ordered);
		state_fail(&d->stream, -ENOMEM);
		return;
	}
	idmap_free(&d->dev->qps);
	d->dev->qps = ordered;
}

/* --- The device. */

/* Whether the HCA has queue pairs' state or SRQs' requests, which the engine cannot save. */
static bool has_offloaded(const struct urxe_dev *dev)
{
	const struct urxe_rq *srq;
	const struct urxe_qp *qp;
	uint32_t at = 0;

	LIST_FOREACH(srq, &dev->srqs, link)
	if (srq->hca)
		return true;
	while (dev->offload && (qp = idmap_next(&dev->qps, &at)))
		if (qp->offloaded)
			return true;
	return false;
}

/* Checks whether the device can be saved, and withdraws its rights: then peers copy no more, and
 * payloads with references are sent again in packets. Returns 0, or -EOPNOTSUPP or -EBUSY as of
 * urxe_state_save. */
static int quiesce(struct urxe_dev *dev)
{
	uint32_t at = 0;
	struct urxe_mr *mr;
	struct urxe_fast_mr *fast;

	if (has_offloaded(dev))
		return -EOPNOTSUPP;
	while ((mr = idmap_next(&dev->mrs, &at)))
		if (mr_is_held(mr))
			return -EBUSY;
	at = 0;
	while ((fast = idmap_next(&dev->fast_mrs, &at)))
		if (fast->registered && mr_is_held(fast->mr))
			return -EBUSY;
	urxe_copy_rights_withdraw(dev);
	return copies_ended(dev) ? 0 : -EBUSY;
}

/* Saves the groups of a bucket, the oldest first, because the bucket begins with the newest. */
static void save_bucket(struct state_device *d, const struct mcast_bucket *bucket)
{
	struct state_list groups = {0};
	struct mcast_group *group;

	LIST_FOREACH(group, bucket, link)
	{
		state_list_add(d, &groups, group);
	}
	for (uint32_t i = groups.n; i--;)
		group_record(d, groups.object[i]);
	state_list_free(&groups);
}

static void save_groups(struct state_device *d)
{
	for (uint32_t i = 0; i < MCAST_BUCKETS; i++)
		save_bucket(d, &d->dev->mcast.buckets[i]);
}

static void save_objects(struct state_device *d)
{
	for (uint32_t i = 0; i < d->cqs.n; i++)
		cq_record(d, d->cqs.object[i]);
	for (uint32_t i = 0; i < d->mrs.n; i++)
		mr_record(d, d->mrs.object[i]);
	for (uint32_t i = 0; i < d->fast_mrs.n; i++)
		fast_mr_record(d, d->fast_mrs.object[i]);
	for (uint32_t i = 0; i < d->srqs.n; i++)
		srq_record(d, d->srqs.object[i]);
	for (uint32_t i = 0; i < d->qps.n; i++)
		qp_record(d, d->qps.object[i]);
	for (uint32_t i = 0; i < d->mws.n; i++)
		mw_record(d, d->mws.object[i]);
	save_groups(d);
	ready_record(d);
	for (uint32_t i = 0; i < d->cqs.n; i++)
		completions_record(d, i);
}

static void free_lists(struct state_device *d)
{
	state_list_free(&d->cqs);
	state_list_free(&d->srqs);
	state_list_free(&d->qps);
	state_list_free(&d->mrs);
	state_list_free(&d->mws);
	state_list_free(&d->fast_mrs);
}

int urxe_state_save(struct urxe_dev *dev, uint64_t now, const struct urxe_state_save *how,
		    uint8_t **stream, size_t *length)
{
	struct state_device d = {.dev = dev, .save = how};
	struct state_stream *s = &d.stream;
	int rc = quiesce(dev);

	if (rc)
		return rc;
	RECORD_ENTRY(dev, SAVE, .now = now);
	dev_pass_time(dev, now);
	stream_begin_save(s, &device_format);
	s->now = dev->now;
	list_objects(&d);
	order_qps(&d);
	device_record(&d);
	if (state_ok(s))
		save_objects(&d);
	state_begin(s, STATE_RECORD_END);
	state_end(s);
	free_lists(&d);
	return stream_finish_save(s, stream, length);
}

void urxe_state_free(uint8_t *stream)
{
	free(stream);
}
