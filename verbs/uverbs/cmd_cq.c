/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CREATE_COMP_CHANNEL, CREATE_CQ, RESIZE_CQ, REQ_NOTIFY_CQ, DESTROY_CQ. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <hca/hca.h>
#include <rdma/rdma_user_rxe.h>
#include <rxe/offload.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/settle.h"
#include "poll/due_events.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/poll_hook.h"
#include "queues/publish.h"
#include "queues/verbs_cq.h"
#include "uverbs/device_max.h"
#include "uverbs/uverbs_command.h"

int cmd_create_comp_channel(const struct command *c)
{
	struct ib_uverbs_create_comp_channel_resp reply = {0};
	struct comp_channel *channel;
	int fd, rc;

	rc = command_lock(c);
	if (rc)
		return rc;
	adapter_unlock();
	rc = comp_channel_create(sizeof(struct ib_uverbs_comp_event_desc), false, c->file, &channel,
				 &fd);
	if (rc)
		return rc;
	reply.fd = (uint32_t)fd;
	rc = command_reply(c, &reply, sizeof(reply));
	if (rc)
		close(fd);
	return rc;
}

static int find_channel(const struct command *c, int fd, struct comp_channel **channel)
{
	struct fd_object *object;

	*channel = NULL;
	if (fd < 0)
		return 0;
	object = fd_lookup(fd);
	if (!object || object->kind != FD_CHANNEL)
		return -EBADF;
	*channel = (struct comp_channel *)object;
	return (*channel)->file == c->file || (*channel)->context_unknown ? 0 : -EBADF;
}

/* Creates the CQ, gives it a handle and sets *out. Checks in the order of the kernel's create_cq
 * and rxe_create_cq, so the error is the same. 0 or a negative errno value. */
static int make_cq(const struct command *c, const struct ib_uverbs_ex_create_cq *request,
		   struct cq **out)
{
	struct comp_channel *channel;
	struct hca_limits max;
	struct cq *cq;
	int rc;

	device_max(&max);
	if (request->comp_mask || request->reserved || request->comp_vector >= MAX_COMP_VECTORS)
		return -EINVAL;
	rc = find_channel(c, request->comp_channel, &channel);
	if (rc)
		return rc;
	if (request->flags)
		return -EOPNOTSUPP;
	if (!request->cqe || request->cqe > max.max_cqe)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	rc = queue_create(&cq->ring, &c->file->queues, c->fd, request->cqe,
			  sizeof(struct ib_uverbs_wc));
	if (rc)
		goto fail_ring;
	rc = urxe_cq_create(adapter.dev, cq, &cq->cq);
	if (rc)
		goto fail_cq;
	rc = command_add_object(c, &cq->object, OBJECT_CQ, request->user_handle);
	if (rc)
		goto fail_name;
	cq->channel = channel;
	if (channel) {
		comp_channel_use(channel);
		if (channel->context_unknown)
			comp_channel_bind(channel, c->file);
	}
	*out = cq;
	return 0;
fail_name:
	urxe_cq_destroy(cq->cq);
fail_cq:
	queue_destroy(&cq->ring, &c->file->queues);
fail_ring:
	free(cq);
	return rc;
}

static int create_cq(const struct command *c, const struct ib_uverbs_ex_create_cq *request)
{
	struct ib_uverbs_ex_create_cq_resp reply = {0};
	struct rxe_create_cq_resp driver;
	struct cq *cq;
	int rc = make_cq(c, request, &cq);

	if (rc)
		return rc;
	reply.base.cq_handle = cq->object.handle;
	reply.base.cqe = queue_capacity(&cq->ring);
	reply.response_length = c->out_size < sizeof(reply) ? c->out_size : sizeof(reply);
	driver.mi = queue_mminfo(&cq->ring);
	rc = command_reply(c, &reply, c->extended ? sizeof(reply) : sizeof(reply.base));
	if (!rc)
		rc = command_reply_driver(c, &driver, sizeof(driver));
	if (rc) {
		cq_destroy(&cq->object);
		return rc;
	}
	poll_hook_install(c->file, c->fd, request->user_handle);
	return 0;
}

int cmd_create_cq(const struct command *c)
{
	const struct ib_uverbs_create_cq *request = c->request;
	const struct ib_uverbs_ex_create_cq as_ex = {
		.user_handle = request->user_handle,
		.cqe = request->cqe,
		.comp_vector = request->comp_vector,
		.comp_channel = request->comp_channel,
	};

	return create_cq(c, &as_ex);
}

int cmd_create_cq_ex(const struct command *c)
{
	return create_cq(c, c->request);
}

/* If hca_poll_cq returns true, it has passed at least this number of completions to the engine
 * (BATCH times ROUNDS in hca_cq.c). */
#define POLLED 128

/* Passes the HCA's completions of the CQ to the engine, and makes them visible. Ends when none is
 * left, or after about as many as fill the ring: new ones may come without end. */
static void take_all_completions(const struct cq *cq)
{
	void *hca_cq = urxe_offload_hca_cq(cq->cq);
	uint32_t rounds = queue_capacity(&cq->ring) / POLLED + 1;

	while (hca_cq && rounds-- && hca_poll_cq(adapter.hca.hca, hca_cq))
		;
	adapter_publish();
}

/* Time limit of wait_for_growth(): more than an HCA needs to resize a CQ beside other commands. */
#define GROWTH_NS 500000000ull

/*
 * If the new ring of `cqe` entries is smaller than the present one, waits while another command
 * makes the HCA's CQ larger: the HCA's completions need room in the new ring, and their number is
 * unknown during that command. 0; -EBUSY: that command takes longer than GROWTH_NS; or the error of
 * command_pause(). Releases adapter.lock meanwhile. The wait is limited, because librxe holds its
 * spin lock of the CQ during RESIZE_CQ, and threads that poll the CQ spin.
 */
static int wait_for_growth(const struct command *c, struct cq *cq, uint32_t cqe)
{
	const uint64_t end = clock_monotonic() + GROWTH_NS;
	int rc = 0;

	cq->object.users++;
	while (!rc && cqe < queue_capacity(&cq->ring) &&
	       hca_cq_is_resizing(urxe_offload_hca_cq(cq->cq)))
		rc = clock_monotonic() < end ? command_pause(c) : -EBUSY;
	cq->object.users--;
	return rc;
}

/* Moves the CQ to a new ring of `cqe` entries, and writes the response. librxe does not use the old
 * ring during the command, and maps the new one after it. 0; -EINVAL: the CQ has more completions
 * than fit into the new ring; or another negative errno value. */
static int resize_cq(const struct command *c, struct cq *cq, uint32_t cqe)
{
	struct ib_uverbs_resize_cq_resp reply = {0};
	struct rxe_resize_cq_resp driver;
	struct queue ring;
	int rc = queue_create(&ring, &c->file->queues, c->fd, cqe, sizeof(struct ib_uverbs_wc));

	if (rc)
		return rc;
	take_all_completions(cq);
	reply.cqe = queue_capacity(&ring);
	driver.mi = queue_mminfo(&ring);
	rc = cq_count(cq) > queue_capacity(&ring) ? -EINVAL
						  : command_reply(c, &reply, sizeof(reply));
	if (!rc)
		rc = command_reply_driver(c, &driver, sizeof(driver));
	if (rc)
		queue_destroy(&ring, &c->file->queues);
	else
		cq_move(cq, &ring);
	return rc;
}

static int resize_cq_locked(const struct command *c, const struct ib_uverbs_resize_cq *request)
{
	struct cq *cq = (struct cq *)command_object(c, OBJECT_CQ, request->cq_handle);
	struct hca_limits max;
	int rc;

	if (!cq)
		return command_object_error(c, request->cq_handle);
	device_max(&max);
	if (!request->cqe || request->cqe > max.max_cqe)
		return -EINVAL;
	rc = wait_for_growth(c, cq, request->cqe);
	if (rc)
		return rc;
	adapter_defer_destruction();
	return resize_cq(c, cq, request->cqe);
}

int cmd_resize_cq(const struct command *c)
{
	int rc = command_lock(c);

	if (rc)
		return rc;
	rc = resize_cq_locked(c, c->request);
	adapter_unlock_settled();
	return rc;
}

/* Arms the CQ before it runs the engine, so that completions of frames that already wait in the
 * receive rings raise the event, too. */
int cmd_req_notify_cq(const struct command *c)
{
	const struct ib_uverbs_req_notify_cq *request = c->request;
	struct cq *cq = (struct cq *)c->object;

	poll_hook_install_ex(cq);
	cq_arm(cq, request->solicited_only);
	engine_run(clock_now());
	engine_wake_for_work();
	return 0;
}

/* Waits until no completion event of the process is due or in flight (poll/due_events.h), because
 * such an event cannot be withdrawn. With the lock, which it releases meanwhile. 0, or the error of
 * command_pause(). */
static int wait_for_events(const struct command *c)
{
	int rc = 0;

	due_events_begin_drain();
	while (!rc && due_events_any())
		rc = command_pause(c);
	due_events_end_drain();
	return rc;
}

int cmd_destroy_cq(const struct command *c)
{
	const struct ib_uverbs_destroy_cq *request = c->request;
	struct ib_uverbs_destroy_cq_resp reply = {0};
	struct cq *cq;
	int rc = wait_for_events(c);

	if (rc)
		return rc;
	/* Another thread may have destroyed the CQ meanwhile. */
	cq = (struct cq *)command_object(c, OBJECT_CQ, request->cq_handle);
	if (!cq)
		return command_object_error(c, request->cq_handle);
	if (cq->object.users)
		return -EBUSY;
	if (cq->channel)
		reply.comp_events_reported =
			comp_channel_withdraw(cq->channel, cq->object.user_handle, cq->comp_events);
	reply.async_events_reported =
		comp_channel_withdraw(c->file->async, cq->object.user_handle, cq->async_events);
	cq_destroy(&cq->object);
	return command_reply(c, &reply, sizeof(reply));
}
