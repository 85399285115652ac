/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pd.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/device.h"

static int make_pd(struct hca *hca, uint32_t number, struct hca_pd **out)
{
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->pd = hca->verbs->alloc_pd(hca->context);
	if (!pd->pd) {
		free(pd);
		return hca_verbs_null_error();
	}
	pd->hca = hca;
	pd->number = number;
	LIST_INSERT_HEAD(&hca->pds, pd, link);
	*out = pd;
	return 0;
}

struct hca_pd *hca_pd_find(const struct hca *hca, uint32_t number)
{
	struct hca_pd *pd;

	LIST_FOREACH(pd, &hca->pds, link)
	if (pd->number == number)
		break;
	return pd;
}

int hca_pd_get(struct hca *hca, uint32_t number, struct hca_pd **pd)
{
	int rc = 0;

	*pd = hca_pd_find(hca, number);
	if (!*pd)
		rc = make_pd(hca, number, pd);
	if (!rc)
		(*pd)->users++;
	return rc;
}

void hca_pd_put(struct hca_pd *pd)
{
	if (--pd->users)
		return;
	hca_ahs_forget_pd(pd->hca, pd);
	pd->hca->verbs->dealloc_pd(pd->pd);
	LIST_REMOVE(pd, link);
	free(pd);
}
