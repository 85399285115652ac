/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CREATE_SRQ, MODIFY_SRQ, QUERY_SRQ, DESTROY_SRQ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <rxe/offload.h>

#include "adapter/adapter.h"
#include "memory/uaccess.h"
#include "objects/settle.h"
#include "objects/verbs_pd.h"
#include "queues/publish.h"
#include "queues/verbs_srq.h"
#include "uverbs/device_max.h"
#include "uverbs/uverbs_command.h"

/* Sets the limit of a new SRQ. As in Linux' rxe, the limit may exceed the size: to programs it is
 * irrelevant (ibv_create_srq(3)). The engine gets at most the size. 0 or a negative errno value. */
static int set_first_limit(struct srq *srq, uint32_t limit, uint32_t max_wr)
{
	return limit ? urxe_srq_set_limit(srq->recv.rq, limit < max_wr ? limit : max_wr) : 0;
}

/*
 * Creates the engine's SRQ, gives it its handle, and sets its limit. adapter.lock is free while the
 * HCA creates its SRQ, and while the HCA sets the limit. Only in the second case may other commands
 * and a checkpointer find the SRQ, by its handle; they do not destroy it, because this command
 * counts as a user. 0: the caller then decrements object.users; or a negative errno value.
 */
static int make_engine_srq(const struct command *c, const struct ib_uverbs_create_srq *request,
			   const struct urxe_rq_attr *attr, struct srq *srq)
{
	int rc = urxe_srq_create(adapter.dev, attr, &srq->recv.rq);

	/* Without adapter.dev, this is a child that a signal handler has forked meanwhile. */
	if (rc || !adapter.dev)
		return rc;
	rc = command_add_object(c, &srq->object, OBJECT_SRQ, request->user_handle);
	if (!rc) {
		srq->object.users++;
		rc = set_first_limit(srq, request->srq_limit, attr->max_wr);
		if (!adapter.dev)
			return rc;
		if (rc)
			handle_remove(&c->file->handles, &srq->object);
	}
	if (rc)
		urxe_srq_destroy(srq->recv.rq);
	return rc;
}

static int make_srq_queue(const struct command *c, struct srq *srq,
			  const struct ib_uverbs_create_srq *request)
{
	struct urxe_rq_attr attr = {
		.ctx = srq,
		.pd = srq->pd->number,
		.max_sge = request->max_sge,
	};
	struct hca *hca;
	int rc = queue_create(&srq->recv.wq.ring, &c->file->queues, c->fd, request->max_wr,
			      queue_receive_bytes(request->max_sge));

	if (rc)
		return rc;
	srq->recv.max_sge = request->max_sge;
	attr.max_wr = queue_capacity(&srq->recv.wq.ring);
	/* Set before the engine's SRQ exists: the HCA's SRQ may have events before this one has its
	 * handle. */
	srq->object = (struct object){
		.type = OBJECT_SRQ, .user_handle = request->user_handle, .file = c->file};
	hca = adapter_allow_unlock();
	rc = make_engine_srq(c, request, &attr, srq);
	if (command_forbid_unlock(hca))
		return -EIO;
	if (rc)
		queue_destroy(&srq->recv.wq.ring, &c->file->queues);
	else
		srq->object.users--;
	return rc;
}

static int reply_srq(const struct command *c, const struct srq *srq)
{
	const struct ib_uverbs_create_srq_resp reply = {
		.srq_handle = srq->object.handle,
		.max_wr = queue_capacity(&srq->recv.wq.ring),
		.max_sge = srq->recv.max_sge,
		.srqn = srq->object.handle,
	};
	const struct rxe_create_srq_resp driver = {
		.mi = queue_mminfo(&srq->recv.wq.ring),
		.srq_num = srq->object.handle,
	};
	int rc = command_reply(c, &reply, sizeof(reply));

	return rc ? rc : command_reply_driver(c, &driver, sizeof(driver));
}

int cmd_create_srq(const struct command *c)
{
	struct ib_uverbs_create_srq *request = c->request;
	struct pd *pd = (struct pd *)c->object;
	struct hca_limits max;
	struct srq *srq;
	int rc;

	device_max(&max);
	if (!request->max_wr || request->max_wr > max.max_srq_wr ||
	    request->max_sge > max.max_srq_sge)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->pd = pd;
	/*
	 * At least one segment, as in Linux' rxe (RXE_MIN_SRQ_SGE), and because queues/verbs_recv.c
	 * replaces a malformed request by one with a segment.
	 */
	if (!request->max_sge)
		request->max_sge = 1;
	pd->object.users++;
	rc = make_srq_queue(c, srq, request);
	if (rc) {
		(void)comp_channel_withdraw(c->file->async, request->user_handle,
					    srq->async_events);
		pd->object.users--;
		free(srq);
		return rc;
	}
	rc = reply_srq(c, srq);
	if (rc)
		srq_destroy(&srq->object);
	return rc;
}

/* Writes the new ring's mminfo, by which librxe maps the ring afterwards, to the address in the
 * provider's part of the command. 0; -EINVAL: the command has no such part; -EFAULT: the address is
 * bad. */
static int reply_srq_ring(const struct command *c, const struct queue *ring)
{
	const struct mminfo mi = queue_mminfo(ring);
	struct rxe_modify_srq_cmd driver;

	if (c->driver_in_size < sizeof(driver))
		return -EINVAL;
	memcpy(&driver, c->driver_in, sizeof(driver));
	return uaccess_write(driver.mmap_info_addr, &mi, sizeof(mi));
}

/* Sets the limit. First counts the change: the HCA may take a while, and a resize that fails
 * meanwhile must not set the old limit again. 0 or a negative errno value. */
static int change_limit(struct srq *srq, uint32_t limit)
{
	srq->limit_changes++;
	return urxe_srq_set_limit(srq->recv.rq, limit);
}

/*
 * Resizes the SRQ of the engine and of the HCA to max_wr requests, and then sets the limit if the
 * request has one. During the resize the old limit stays armed, unless it exceeds the new size;
 * other commands may set another one. 0, or a negative errno value: then size and limit of the
 * engine's SRQ are as before, but a limit that another command has set meanwhile stays. The HCA's
 * SRQ may keep the new size after an error: other threads may have posted too many requests for it
 * meanwhile, or have set a higher limit.
 */
static int resize_engine_srq(struct srq *srq, uint32_t max_wr,
			     const struct ib_uverbs_modify_srq *request)
{
	struct urxe_rq *rq = srq->recv.rq;
	const uint32_t old = urxe_srq_limit(rq), changes = srq->limit_changes;
	struct hca *hca;
	int rc = 0;

	if (request->srq_limit > max_wr)
		return -EINVAL;
	hca = adapter_allow_unlock();
	if (old > max_wr)
		rc = urxe_srq_set_limit(rq, 0);
	if (!rc)
		rc = urxe_srq_resize(rq, max_wr);
	if (!rc && request->attr_mask & IBV_SRQ_LIMIT)
		change_limit(srq, request->srq_limit);
	else if (rc && old > max_wr && srq->limit_changes == changes)
		urxe_srq_set_limit(rq, old);
	if (command_forbid_unlock(hca))
		return -EIO;
	/* Hands the HCA requests that other threads have posted meanwhile. */
	urxe_offload_refill(rq);
	adapter_publish();
	return rc;
}

static int resize_srq(const struct command *c, struct srq *srq,
		      const struct ib_uverbs_modify_srq *request)
{
	struct queue ring;
	int rc;

	if (!request->max_wr || request->max_wr > MAX_WR || request->srq_limit > request->max_wr)
		return -EINVAL;
	rc = queue_create(&ring, &c->file->queues, c->fd, request->max_wr,
			  queue_receive_bytes(srq->recv.max_sge));
	if (rc)
		return rc;
	rc = reply_srq_ring(c, &ring);
	if (!rc)
		rc = resize_engine_srq(srq, queue_capacity(&ring), request);
	if (rc && adapter.dev)
		queue_destroy(&ring, &c->file->queues);
	else if (!rc)
		work_queue_move(&srq->recv.wq, &ring, urxe_rq_retired(srq->recv.rq),
				&c->file->queues);
	return rc;
}

static int set_limit(struct srq *srq, uint32_t limit)
{
	struct hca *hca = adapter_allow_unlock();
	const int rc = change_limit(srq, limit);

	return command_forbid_unlock(hca) ? -EIO : rc;
}

static int modify_srq(const struct command *c, struct srq *srq,
		      struct ib_uverbs_modify_srq *request)
{
	if (request->attr_mask & ~(uint32_t)(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	/* Posts the requests in the ring to the engine, because they count for the new size and
	 * limit. Without this the engine would read them only when a message comes: receives have
	 * no doorbell. */
	recv_queue_refill(&srq->recv);
	if (!(request->attr_mask & IBV_SRQ_LIMIT))
		request->srq_limit = urxe_srq_limit(srq->recv.rq);
	if (request->attr_mask & IBV_SRQ_MAX_WR)
		return resize_srq(c, srq, request);
	return request->attr_mask & IBV_SRQ_LIMIT ? set_limit(srq, request->srq_limit) : 0;
}

/* Counts as a user of the SRQ, so that no other command destroys it while this one has released the
 * lock. */
int cmd_modify_srq(const struct command *c)
{
	int rc;

	c->object->users++;
	rc = modify_srq(c, (struct srq *)c->object, c->request);
	c->object->users--;
	return rc;
}

int cmd_query_srq(const struct command *c)
{
	const struct srq *srq = (const struct srq *)c->object;
	struct ib_uverbs_query_srq_resp reply = {0};

	reply.max_wr = queue_capacity(&srq->recv.wq.ring);
	reply.max_sge = srq->recv.max_sge;
	reply.srq_limit = urxe_srq_limit(srq->recv.rq);
	return command_reply(c, &reply, sizeof(reply));
}

int cmd_destroy_srq(const struct command *c)
{
	struct srq *srq = (struct srq *)c->object;
	struct ib_uverbs_destroy_srq_resp reply = {0};

	if (srq->object.users)
		return -EBUSY;
	reply.events_reported =
		comp_channel_withdraw(c->file->async, srq->object.user_handle, srq->async_events);
	srq_destroy(&srq->object);
	return command_reply(c, &reply, sizeof(reply));
}
