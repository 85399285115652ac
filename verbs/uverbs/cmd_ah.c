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

/* Writes the response. Because ah_num is not 0, librxe puts it into work requests instead of the
 * whole address, and does not resolve the MAC address itself. 0 or -EFAULT. */
static int reply_ah(const struct command *c, const struct ah *ah)
{
	const struct ib_uverbs_create_ah_resp reply = {.ah_handle = ah->object.handle};
	const struct rxe_create_ah_resp driver = {.ah_num = ah->object.handle};
	int rc = command_reply(c, &reply, sizeof(reply));

	return rc ? rc : command_reply_driver(c, &driver, sizeof(driver));
}

/*
 * Creates the HCA's address handle now, and not for the first datagram: the HCA's driver looks up
 * the next hop for that, which takes long, and adapter.lock would be held then. Called with the
 * lock, which this function releases meanwhile. 0, also if the HCA needs no handle; or the error of
 * hca_ah_end().
 */
static int make_hca_ah(struct pd *pd, const struct urxe_path *path)
{
	struct hca *hca = adapter.hca.hca;
	struct hca_ah_call *call = hca ? hca_ah_begin(hca, pd->number, path, false) : NULL;
	int rc;

	if (!call)
		return 0;
	pd->object.users++;
	adapter_unlock();
	hca_ah_run(call);
	adapter_lock();
	adapter_defer_destruction();
	rc = hca_ah_end(call);
	adapter_unlock_settled();
	hca_release(hca);
	adapter_lock();
	pd->object.users--;
	return rc;
}

static int add_ah(const struct command *c, const struct ib_uverbs_create_ah *request,
		  const struct urxe_path *path, struct pd *pd)
{
	struct ah *ah = calloc(1, sizeof(*ah));
	int rc;

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
	return rc;
}

/* Whether there is an HCA that has the path's source GID. */
static bool may_use_hca(const struct urxe_path *path)
{
	struct hca *hca = adapter.hca.hca;

	return hca && hca_has_gid(hca, path->sgid_index);
}

/* Creates the address handle at the HCA and in the context. With the lock, which this function may
 * release meanwhile. hop_error: as address_path() set it. 0 or a negative errno value. */
static int create_ah(const struct command *c, const struct ib_uverbs_create_ah *request,
		     const struct urxe_path *path, int hop_error)
{
	struct pd *pd = (struct pd *)command_object(c, OBJECT_PD, request->pd_handle);
	int rc;

	if (!pd)
		return command_object_error(c, request->pd_handle);
	rc = make_hca_ah(pd, path);
	if (!c->file->live || adapter.dead)
		return -EIO;
	/* The engine has no next hop, and the HCA cannot use the path either. */
	if (hop_error && (rc || !may_use_hca(path)))
		return rc ? rc : hop_error;
	return add_ah(c, request, path, pd);
}

int cmd_create_ah(const struct command *c)
{
	const struct ib_uverbs_create_ah *request = c->request;
	struct urxe_path path;
	int hop_error, rc = address_path(&request->attr, &path, &hop_error);

	if (!rc)
		rc = command_lock(c);
	if (rc)
		return rc;
	rc = create_ah(c, request, &path, hop_error);
	adapter_unlock();
	return rc;
}

int cmd_destroy_ah(const struct command *c)
{
	ah_destroy(c->object);
	return 0;
}
