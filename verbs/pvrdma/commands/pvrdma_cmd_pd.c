/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's commands for user contexts and PDs: CREATE_UC, CREATE_PD. */
#include <errno.h>
#include <stdlib.h>

#include "commands/pvrdma_command.h"
#include "doorbell_page.h"
#include "object.h"

/* Destroys the context that the page already has, if any. The driver gives a page to one context
 * only, so it has given up the creation of the earlier one. */
static void destroy_context_of(struct pvrdma *dev, uint32_t page)
{
	const struct pv_object *uc;
	uint32_t at = 0;

	while ((uc = pv_object_next(dev, PV_UC, &at)))
		if (uc->uar_page == page)
			pv_object_destroy(dev, PV_UC, uc->handle);
}

int pv_cmd_create_uc(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	/* Page 0 is the driver's. A pfn64 below uar_pfn wraps to a page number that is too large.
	 */
	const uint64_t page = request->create_uc.pfn64 - dev->slots.uar_pfn;
	struct pv_uc *uc;
	int rc;

	if (!page || page >= PVRDMA_UAR_PAGES)
		return -EINVAL;
	uc = calloc(1, sizeof(*uc));
	if (!uc)
		return -ENOMEM;
	destroy_context_of(dev, (uint32_t)page);
	rc = pv_object_add(dev, &uc->object, PV_UC, (uint32_t)page, sizeof(*uc));
	if (rc) {
		free(uc);
		return rc;
	}
	pv_doorbell_page_use(dev, (uint32_t)page);
	response->handle.handle = uc->object.handle;
	return 0;
}

int pv_cmd_create_pd(struct pvrdma *dev, const union pv_request *request,
		     union pv_response *response)
{
	struct pv_object *uc = NULL;
	struct pv_pd *pd;
	int rc;

	if (request->handle.handle) {
		uc = pv_object_find(dev, PV_UC, request->handle.handle);
		if (!uc)
			return -ENOENT;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	rc = pv_object_add(dev, &pd->object, PV_PD, uc ? uc->uar_page : 0, sizeof(*pd));
	if (rc) {
		free(pd);
		return rc;
	}
	pd->uc = uc;
	if (uc)
		uc->users++;
	response->handle.handle = pd->object.handle;
	return 0;
}
