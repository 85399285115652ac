/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/recv_hook.h"

#include <errno.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <rxe/offload.h>

#include "adapter/adapter.h"
#include "memory/uaccess.h"
#include "objects/uverbs_file.h"
#include "poll/poll_hook.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"

/* Hands the HCA the receives in the ring of the QP or SRQ with that handle. */
static void refill(struct uverbs_file *file, enum object_type type, uint32_t handle)
{
	struct object *object;
	struct urxe_rq *rq;

	if (!adapter.hca.hca)
		return;
	adapter_lock();
	object = file->live && adapter.hca.hca ? handle_find(&file->handles, type, handle) : NULL;
	if (object) {
		rq = type == OBJECT_SRQ ? ((struct srq *)object)->recv.rq
					: ((struct qp *)object)->recv.rq;
		/* NULL: the queue pair has a shared receive queue, so nothing was posted. */
		if (rq)
			urxe_offload_refill(rq);
		adapter_publish();
	}
	adapter_unlock();
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uverbs_file *file = uverbs_file_of_hook(qp->context->cmd_fd);
	int rc;

	if (!file || !file->post_recv)
		return EIO;
	rc = file->post_recv(qp, wr, bad);
	refill(file, OBJECT_QP, qp->handle);
	return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct uverbs_file *file = uverbs_file_of_hook(srq->context->cmd_fd);
	int rc;

	if (!file || !file->post_srq_recv)
		return EIO;
	rc = file->post_srq_recv(srq, wr, bad);
	refill(file, OBJECT_SRQ, srq->handle);
	return rc;
}

void recv_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle)
{
	struct ibv_context context;
	uint64_t at;

	if (file->post_recv)
		return;
	if (!poll_hook_read_context(user_handle, &context, &at) || context.cmd_fd != fd ||
	    !context.ops.post_recv || !context.ops.post_srq_recv) {
		adapter.hca.unhooked = true;
		return;
	}
	file->post_recv = context.ops.post_recv;
	file->post_srq_recv = context.ops.post_srq_recv;
	uverbs_file_publish_hooks();
	context.ops.post_recv = post_recv;
	context.ops.post_srq_recv = post_srq_recv;
	uaccess_write(at + offsetof(struct ibv_context, ops.post_recv), &context.ops.post_recv,
		      sizeof(context.ops.post_recv));
	uaccess_write(at + offsetof(struct ibv_context, ops.post_srq_recv),
		      &context.ops.post_srq_recv, sizeof(context.ops.post_srq_recv));
}
