/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ALLOC_PD, DEALLOC_PD. */
#include <errno.h>
#include <stdlib.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "objects/verbs_pd.h"
#include "uverbs/uverbs_command.h"

/* Makes the PD, gives it a handle, and writes the response. *number: its number in the engine. With
 * the lock. 0 or a negative errno value. */
static int alloc_pd(const struct command *c, uint32_t *number)
{
	struct ib_uverbs_alloc_pd_resp reply = {0};
	struct pd *pd;
	int rc;

	if (!c->file->async)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	*number = pd->number = pd_new_number();
	rc = command_add_object(c, &pd->object, OBJECT_PD, 0);
	if (rc) {
		free(pd);
		return rc;
	}
	reply.pd_handle = pd->object.handle;
	rc = command_reply(c, &reply, sizeof(reply));
	if (rc)
		pd_destroy(&pd->object);
	return rc;
}

/* Releases adapter.lock, which the caller holds, and then allocates the HCA's protection domain,
 * because that takes long. No HCA: only releases the lock. */
static void make_hca_pd(uint32_t number)
{
	struct hca *hca = adapter.hca.hca;
	struct hca_pd *pd = hca ? hca_pd_begin(hca, number) : NULL;

	adapter_unlock();
	if (!pd)
		return;
	hca_pd_run(pd);
	adapter_lock();
	hca_pd_add(pd);
	adapter_unlock();
	hca_release(hca);
}

/* While make_hca_pd() works without the lock, no thread destroys the PD: the program does not know
 * its handle before the command ends. If another thread closes the device, the objects stay until
 * the command ends (uverbs_file.users). */
int cmd_alloc_pd(const struct command *c)
{
	uint32_t number = 0;
	int rc = command_lock(c);

	if (rc)
		return rc;
	rc = alloc_pd(c, &number);
	if (rc)
		adapter_unlock();
	else
		make_hca_pd(number);
	return rc;
}

int cmd_dealloc_pd(const struct command *c)
{
	if (c->object->users)
		return -EBUSY;
	pd_destroy(c->object);
	return 0;
}
