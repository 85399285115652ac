/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "end.h"

#include "hca/hca_device.h"

void hca_end(struct hca *hca, struct hca_end *end)
{
	if (hca->collects) {
		STAILQ_INSERT_TAIL(&hca->ends, end, link);
		return;
	}
	end->call(end);
	end->finish(end);
}

void hca_collect_ends(struct hca *hca)
{
	hca->collects = true;
}

/* A domain comes to the list by the end of its last object, and is deallocated after that. */
static void finish_all(struct hca *hca, struct hca_end_list *ends)
{
	struct hca_end *end;

	hca->collects = true;
	while ((end = STAILQ_FIRST(ends))) {
		STAILQ_REMOVE_HEAD(ends, link);
		end->finish(end);
	}
	hca->collects = false;
}

static void call_all(const struct hca_end_list *ends)
{
	struct hca_end *end;

	STAILQ_FOREACH(end, ends, link)
	end->call(end);
}

/* False: none is left. */
static bool take_all(struct hca *hca, struct hca_end_list *ends)
{
	STAILQ_INIT(ends);
	STAILQ_CONCAT(ends, &hca->ends);
	return !STAILQ_EMPTY(ends);
}

void hca_end_collected(struct hca *hca)
{
	const struct hca_owner *owner = hca->owner;
	struct hca_end_list ends;
	bool some = false;

	hca->collects = false;
	while (take_all(hca, &ends)) {
		if (!some)
			hca_hold(hca);
		some = true;
		owner->unlock(owner->ctx);
		call_all(&ends);
		owner->lock(owner->ctx);
		finish_all(hca, &ends);
	}
	if (!some)
		return;
	owner->unlock(owner->ctx);
	hca_release(hca);
	owner->lock(owner->ctx);
}

void hca_end_rest(struct hca *hca)
{
	struct hca_end_list ends;

	while (take_all(hca, &ends)) {
		call_all(&ends);
		finish_all(hca, &ends);
	}
}
