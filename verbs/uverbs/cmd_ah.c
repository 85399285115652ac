/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CREATE_AH, DESTROY_AH. */
#include <errno.h>
#include <stdlib.h>

#include <hca/hca.h>
#include <rdma/rdma_user_rxe.h>

#include "adapter/adapter.h"
#include "objects/settle.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_pd.h"
#include "uverbs/uverbs_address.h"
#include "uverbs/uverbs_command.h"

/*
 * If ah_num is not 0, librxe puts it into work requests instead of the whole address, and does not
 * resolve the MAC address by itself.
 */
static int reply_ah(const struct command *c, const struct ah *ah)
{
	const struct ib_uverbs_create_ah_resp reply = {.ah_handle = ah->object.handle};
	const struct rxe_create_ah_resp driver = {.ah_num = ah->object.handle};
	int rc = command_reply(c, &reply, sizeof(reply));

	return rc ? rc : command_reply_driver(c, &driver, sizeof(driver));
}

/*
 * With the lock, which it releases: the HCA looks for the next hop. Without this the
 * first datagram would wait for that, with the lock.
 */
static void make_hca_ah(uint32_t pd, const struct urxe_path *path)
{
	struct hca *hca = adapter.hca.hca;
	struct hca_ah_call *call = hca ? hca_ah_begin(hca, pd, path) : NULL;

	adapter_unlock();
	if (!call)
		return;
	hca_ah_run(call);
	adapter_lock();
	adapter_defer_destruction();
	hca_ah_end(call);
	adapter_unlock_settled();
	hca_release(hca);
}

/* With the lock. hop_error: of address_path(). *number: of the PD. */
static int create_ah(const struct command *c, const struct ib_uverbs_create_ah *request,
		     const struct urxe_path *path, int hop_error, uint32_t *number)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	struct ah *ah;
	int rc;

	if (hop_error && !adapter.hca.hca)
		return hop_error;
	if (!pd)
		return command_object_error(c, request->pd_handle);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->pd = pd;
	ah->path = *path;
	rc = command_add_object(c, &ah->object, OBJECT_AH, request->user_handle);
	if (rc) {
		free(ah);
		return rc;
	}
	pd->object.users++;
	rc = reply_ah(c, ah);
	if (rc)
		ah_destroy(&ah->object);
	else
		*number = pd->number;
	return rc;
}

int cmd_create_ah(const struct command *c)
{
	struct ib_uverbs_create_ah request;
	struct urxe_path path;
	uint32_t number = 0;
	int hop_error, rc = command_read(c, &request, sizeof(request));

	if (!rc)
		rc = address_path(&request.attr, &path, &hop_error);
	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	rc = create_ah(c, &request, &path, hop_error, &number);
	if (rc)
		adapter_unlock();
	else
		make_hca_ah(number, &path);
	return rc;
}

int cmd_destroy_ah(const struct command *c)
{
	struct ib_uverbs_destroy_ah request;
	struct object *ah;
	int rc = command_read(c, &request, sizeof(request));

	if (rc)
		return rc;
	ah = command_object(c, OBJECT_AH, request.ah_handle);
	if (!ah)
		return command_object_error(c, request.ah_handle);
	ah_destroy(ah);
	return 0;
}
