/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll_hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include <infiniband/verbs.h>

#include "cq.h"
#include "file.h"
#include "progress.h"
#include "user.h"

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct uverbs_file *file = file_lookup(cq->context->cmd_fd);
	int found;

	if (!file || !file->poll_cq)
		return -1;
	found = file->poll_cq(cq, n, wc);
	if (!found && progress_poll(file, cq->handle))
		found = file->poll_cq(cq, n, wc);
	if (found)
		progress_found();
	return found;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct uverbs_file *file = file_lookup(cq->context->cmd_fd);
	int rc;

	if (!file || !file->start_poll)
		return EIO;
	rc = file->start_poll(cq, attr);
	if (rc == ENOENT && progress_poll(file, cq->handle))
		rc = file->start_poll(cq, attr);
	if (rc == 0)
		progress_found();
	return rc;
}

/*
 * A user handle is opaque to the ABI. It is taken for a pointer only where what
 * it points to names this very descriptor.
 */
void poll_wrap(struct uverbs_file *file, int fd, uint64_t user_handle)
{
	int (*hook)(struct ibv_cq *, int, struct ibv_wc *) = poll_cq;
	struct ibv_context context;
	struct ibv_cq cq;
	uint64_t at;

	if (user_read(&cq, user_handle, sizeof(cq)))
		return;
	at = (uint64_t)(uintptr_t)cq.context;
	if (user_read(&context, at, sizeof(context)) || context.cmd_fd != fd ||
	    !context.ops.poll_cq || context.ops.poll_cq == poll_cq)
		return;
	file->poll_cq = context.ops.poll_cq;
	user_write(at + offsetof(struct ibv_context, ops.poll_cq), &hook, sizeof(hook));
}

/* An ibv_cq_ex's function comes from the library that poll_cq came from. */
static int same_library(const void *a, const void *b)
{
	Dl_info of_a, of_b;

	return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

void poll_wrap_ex(struct cq *cq)
{
	int (*hook)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *) = start_poll;
	struct uverbs_file *file = cq->object.file;
	uint64_t at = cq->object.user_handle + offsetof(struct ibv_cq_ex, start_poll);
	int (*found)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);

	if (cq->ex_known || !file->poll_cq)
		return;
	cq->ex_known = true;
	if (user_read(&found, at, sizeof(found)) || !found || found == hook ||
	    !same_library((void *)found, (void *)file->poll_cq))
		return;
	file->start_poll = found;
	user_write(at, &hook, sizeof(hook));
}
