/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses the commands of ioctl(2) on an open uverbs device (rdma/ib_user_ioctl_cmds.h). Only
 * ADVISE_MR is known here. For each other command rdma-core gets ENOTTY, and sends the command by
 * write(2) (uverbs.c).
 */
#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "memory/uaccess.h"
#include "uverbs/uverbs.h"
#include "uverbs/uverbs_command.h"

/* Number of attributes of ADVISE_MR, whose IDs are 0 to 3. */
#define ATTRS 4

struct ioctl_command {
	struct ib_uverbs_attr by_id[ATTRS]; /* len 0 and data 0: missing */
	struct ib_uverbs_ioctl_hdr hdr;     /* the last member: it ends with a flexible array */
};

static int read_attrs(struct ioctl_command *c, uint64_t address)
{
	struct ib_uverbs_attr attrs[ATTRS];
	uint32_t n = c->hdr.num_attrs;
	int rc;

	if (n > ATTRS || c->hdr.length != sizeof(c->hdr) + n * sizeof(attrs[0]))
		return -EINVAL;
	rc = uaccess_read(attrs, address + sizeof(c->hdr), n * sizeof(attrs[0]));
	for (uint32_t i = 0; !rc && i < n; i++) {
		if (attrs[i].attr_id >= ATTRS)
			return -EINVAL;
		c->by_id[attrs[i].attr_id] = attrs[i];
	}
	return rc;
}

int uverbs_ioctl(struct uverbs_file *file, const void *arg)
{
	struct ioctl_command c = {0};
	int rc = uaccess_read(&c.hdr, (uintptr_t)arg, sizeof(c.hdr));

	if (!rc &&
	    (c.hdr.object_id != UVERBS_OBJECT_MR || c.hdr.method_id != UVERBS_METHOD_ADVISE_MR))
		rc = -ENOTTY;
	if (!rc)
		rc = read_attrs(&c, (uintptr_t)arg);
	if (!rc)
		rc = cmd_advise_mr(file, c.by_id);
	if (!rc)
		return 0;
	errno = -rc;
	return -1;
}
