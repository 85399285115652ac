/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ALLOC_MW, DEALLOC_MW. Work requests bind windows, also for ibv_bind_mw of librxe. */
#include <errno.h>
#include <stdlib.h>

#include <rxe/rxe.h>

#include "adapter/adapter.h"
#include "objects/verbs_mw.h"
#include "objects/verbs_pd.h"
#include "uverbs/uverbs_command.h"

static int alloc_mw(const struct command *c, struct pd *pd, uint8_t type, struct mw **out)
{
	const struct urxe_mw_attr attr = {.pd = pd->number, .type = type};
	struct mw *mw = calloc(1, sizeof(*mw));
	int rc;

	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	rc = urxe_mw_alloc(adapter.dev, &attr, &mw->mw);
	if (!rc) {
		rc = command_add_object(c, &mw->object, OBJECT_MW, 0);
		if (rc)
			urxe_mw_dealloc(mw->mw);
	}
	if (rc) {
		free(mw);
		return rc;
	}
	pd->object.users++;
	*out = mw;
	return 0;
}

int cmd_alloc_mw(const struct command *c)
{
	const struct ib_uverbs_alloc_mw *request = c->request;
	struct ib_uverbs_alloc_mw_resp reply = {0};
	struct mw *mw;
	int rc = alloc_mw(c, (struct pd *)c->object, request->mw_type, &mw);

	if (rc)
		return rc;
	reply.mw_handle = mw->object.handle;
	reply.rkey = urxe_mw_key(mw->mw);
	rc = command_reply(c, &reply, sizeof(reply));
	if (rc)
		mw_destroy(&mw->object);
	return rc;
}

int cmd_dealloc_mw(const struct command *c)
{
	mw_destroy(c->object);
	return 0;
}
