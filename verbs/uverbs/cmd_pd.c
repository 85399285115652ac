/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ALLOC_PD, DEALLOC_PD. */
#include <errno.h>
#include <stdlib.h>

#include "objects/pd.h"
#include "port/port.h"
#include "uverbs/command.h"

int cmd_alloc_pd(const struct command *c)
{
	struct ib_uverbs_alloc_pd_resp reply = {0};
	struct pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return -ENOMEM;
	pd->number = ++port.last_pd;
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

int cmd_dealloc_pd(const struct command *c)
{
	struct ib_uverbs_dealloc_pd request;
	struct object *pd;
	int rc = command_read(c, &request, sizeof(request));

	if (rc)
		return rc;
	pd = command_object(c, OBJECT_PD, request.pd_handle);
	if (!pd)
		return command_object_error(c, request.pd_handle);
	if (pd->users)
		return -EBUSY;
	pd_destroy(pd);
	return 0;
}
