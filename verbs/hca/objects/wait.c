/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wait.h"

#include "hca/hca_device.h"
#include "hca_cq.h"

/* If the owner permits it (hca->may_unlock), releases the lock, and clears hca->may_unlock and
 * hca->defers for the time of the wait: they hold for this thread only, and other threads take the
 * lock meanwhile. Else has no effect. */
struct hca_wait hca_begin_wait(struct hca *hca)
{
	const struct hca_wait wait = {hca->may_unlock, hca->defers};

	if (!wait.unlocked)
		return wait;
	hca->may_unlock = hca->defers = false;
	hca->owner->unlock(hca->owner->ctx);
	return wait;
}

void hca_end_wait(struct hca *hca, const struct hca_wait *wait)
{
	if (!wait->unlocked)
		return;
	hca->owner->lock(hca->owner->ctx);
	hca->may_unlock = true;
	hca->defers = wait->defers;
}

/* A device process has no lock, so its owner has no `unlock`. */
void hca_allow_unlock(struct hca *hca)
{
	hca_hold(hca);
	hca->may_unlock = hca->owner->unlock != NULL;
}

/* If the HCA was detached, this thread's hold may be the last: the thread then closes the HCA, for
 * which it releases the lock. */
bool hca_forbid_unlock(struct hca *hca)
{
	const struct hca_owner *owner = hca->owner;
	bool more;

	hca->may_unlock = false;
	if (hca->dev) {
		more = hca_cqs_catch_up(hca) || hca->dead;
		__atomic_sub_fetch(&hca->holds, 1, __ATOMIC_ACQ_REL);
		return more;
	}
	if (owner->unlock)
		owner->unlock(owner->ctx);
	hca_release(hca);
	if (owner->lock)
		owner->lock(owner->ctx);
	return false;
}
