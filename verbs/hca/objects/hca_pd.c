/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_pd.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "hca/hca_device.h"
#include "wait.h"

static struct hca_pd *alloc_pd(struct hca *hca, uint32_t number)
{
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->hca = hca;
	pd->number = number;
	return pd;
}

struct hca_pd *hca_pd_find(const struct hca *hca, uint32_t number)
{
	struct hca_pd *pd;

	LIST_FOREACH(pd, &hca->pds, link)
	if (pd->number == number)
		break;
	return pd;
}

/* Deallocates a domain that is in no list. */
static void end_pd(struct hca_pd *pd);

/* Allocates a domain for the PD of that number, and adds it to the list; *out becomes the domain.
 * Another call may make a domain of that number during the wait; then *out is that one. 0 or a
 * negative errno value. */
static int make_pd(struct hca *hca, uint32_t number, struct hca_pd **out)
{
	struct hca_pd *pd = alloc_pd(hca, number);
	struct hca_wait wait;
	int rc = 0;

	if (!pd)
		return -ENOMEM;
	wait = hca_begin_wait(hca);
	pd->pd = hca->verbs->alloc_pd(hca->context);
	if (!pd->pd)
		rc = hca_verbs_null_error();
	hca_end_wait(hca, &wait);
	*out = hca_pd_find(hca, number);
	if (rc || *out) {
		end_pd(pd);
		return *out ? 0 : rc;
	}
	LIST_INSERT_HEAD(&hca->pds, pd, link);
	*out = pd;
	return 0;
}

int hca_pd_get(struct hca *hca, uint32_t number, struct hca_pd **pd)
{
	int rc = 0;

	*pd = hca_pd_find(hca, number);
	if (!*pd)
		rc = make_pd(hca, number, pd);
	if (!rc)
		(*pd)->holds++;
	return rc;
}

/* --- Deallocation. */

static void dealloc_pd(struct hca_destruction *destruction)
{
	struct hca_pd *pd = HCA_OBJECT_OF(destruction, struct hca_pd);

	if (pd->pd)
		pd->hca->verbs->dealloc_pd(pd->pd);
}

static void free_pd(struct hca_destruction *destruction)
{
	free(HCA_OBJECT_OF(destruction, struct hca_pd));
}

static void end_pd(struct hca_pd *pd)
{
	pd->destruction = (struct hca_destruction){.call = dealloc_pd, .finish = free_pd};
	hca_destroy_object(pd->hca, &pd->destruction);
}

void hca_pd_put(struct hca_pd *pd)
{
	if (--pd->holds)
		return;
	hca_ahs_forget_pd(pd->hca, pd);
	LIST_REMOVE(pd, link);
	end_pd(pd);
}

static void end_owned(struct hca_pd *pd)
{
	if (!pd->owned)
		return;
	pd->owned = false;
	hca_pd_put(pd);
}

void hca_pd_end(struct hca *hca, uint32_t number)
{
	struct hca_pd *pd = hca_pd_find(hca, number);

	if (pd)
		end_owned(pd);
}

void hca_pds_end_owned(struct hca *hca)
{
	struct hca_pd *pd = LIST_FIRST(&hca->pds);

	while (pd) {
		struct hca_pd *next = LIST_NEXT(pd, link);

		end_owned(pd);
		pd = next;
	}
}

/* --- Allocation outside the lock. */

struct hca_pd *hca_pd_begin(struct hca *hca, uint32_t number)
{
	struct hca_pd *pd = hca_pd_find(hca, number) ? NULL : alloc_pd(hca, number);

	if (pd)
		hca_hold(hca);
	return pd;
}

void hca_pd_run(struct hca_pd *pd)
{
	pd->pd = pd->hca->verbs->alloc_pd(pd->hca->context);
}

/* Adds the domain, or discards it: if the HCA has refused it or was detached, or if a call for an
 * object of the PD has made a domain meanwhile. */
void hca_pd_add(struct hca_pd *pd)
{
	if (!pd->pd || !pd->hca->dev || hca_pd_find(pd->hca, pd->number)) {
		end_pd(pd);
		return;
	}
	pd->owned = true;
	pd->holds = 1;
	LIST_INSERT_HEAD(&pd->hca->pds, pd, link);
}
