/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "destruction.h"

#include <pthread.h>

#include "hca/hca_device.h"

void hca_destroy_object(struct hca *hca, struct hca_destruction *destruction)
{
	int cancel;

	if (hca->defers) {
		STAILQ_INSERT_TAIL(&hca->deferred, destruction, link);
		return;
	}
	/* A thread that has adapter.lock must not end in a write(2) or ioctl(2) of the provider. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	destruction->call(destruction);
	pthread_setcancelstate(cancel, NULL);
	destruction->finish(destruction);
}

void hca_defer_destruction(struct hca *hca)
{
	hca->defers = true;
}

/* Calls finish() of all objects in the list. Sets hca->defers meanwhile: so finish() of the last
 * object of a protection domain adds the domain to hca->deferred, and the caller's next round
 * deallocates it. */
static void finish_all(struct hca *hca, struct hca_destruction_list *list)
{
	struct hca_destruction *destruction;

	hca->defers = true;
	while ((destruction = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		destruction->finish(destruction);
	}
	hca->defers = false;
}

static void call_all(const struct hca_destruction_list *list)
{
	struct hca_destruction *destruction;

	STAILQ_FOREACH(destruction, list, link)
	destruction->call(destruction);
}

/* Moves all deferred destructions to *list. False: there was none. */
static bool take_all(struct hca *hca, struct hca_destruction_list *list)
{
	STAILQ_INIT(list);
	STAILQ_CONCAT(list, &hca->deferred);
	return !STAILQ_EMPTY(list);
}

void hca_destroy_deferred(struct hca *hca)
{
	const struct hca_owner *owner = hca->owner;
	struct hca_destruction_list list;
	bool some = false;

	hca->defers = false;
	while (take_all(hca, &list)) {
		if (!some)
			hca_hold(hca);
		some = true;
		owner->unlock(owner->ctx);
		call_all(&list);
		owner->lock(owner->ctx);
		finish_all(hca, &list);
	}
	if (!some)
		return;
	owner->unlock(owner->ctx);
	hca_release(hca);
	owner->lock(owner->ctx);
}

void hca_destroy_rest(struct hca *hca)
{
	struct hca_destruction_list list;

	while (take_all(hca, &list)) {
		call_all(&list);
		finish_all(hca, &list);
	}
}
