/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uverbs/uverbs.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "memory/mr_index.h"
#include "memory/uaccess.h"
#include "objects/settle.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "process/cancellation.h"
#include "process/log.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"
#include "uverbs/ucontext.h"
#include "uverbs/uverbs_command.h"
#include <hca/hca.h>
#include <rxe/offload.h>
#include <samehost/peer.h>

/* Maximum bytes of a program's request, with the provider's part, and of the structure that a
 * handler gets. The longest request of the commands below is EX_MODIFY_QP. */
#define REQUEST_MAX 512

/* Length of command_pause() in ns: the time between two checks whether another thread's command has
 * ended. */
#define PAUSE_NS 50000

struct command_row {
	const char *name;
	int (*handler)(const struct command *c);
	uint16_t request_size; /* bytes of the structure that the handler gets */
	uint16_t in_size;      /* minimum bytes of the request, without the provider's part */
	uint16_t out_size;     /* minimum bytes of the program's buffer for the response */
	bool unlocked; /* the handler is called without adapter.lock, because it may block */
	/* Type of the object that the handler gets (command.object), and offset of its handle in
	 * the request. Type 0: the handler looks up its objects itself. */
	enum object_type object_type;
	uint16_t handle_offset;
};

/* `value`; the build fails unless the condition holds. */
#define CHECKED(value, condition) ((value) + 0 * sizeof(char[(condition) ? 1 : -1]))
#define REQUEST_SIZE(in) \
	CHECKED(sizeof(struct ib_uverbs_##in), sizeof(struct ib_uverbs_##in) <= REQUEST_MAX)
#define HANDLE_OFFSET(in, handle)                        \
	CHECKED(offsetof(struct ib_uverbs_##in, handle), \
		sizeof(((struct ib_uverbs_##in *)0)->handle) == sizeof(uint32_t))
#define ROW_MEMBERS(id, fn, in, out)                                        \
	.name = #id, .handler = cmd_##fn, .request_size = REQUEST_SIZE(in), \
	.in_size = sizeof(struct ib_uverbs_##in), .out_size = (out)
#define ROW(id, fn, in, out) [IB_USER_VERBS_CMD_##id] = {ROW_MEMBERS(id, fn, in, out)}
#define ROW_UNLOCKED(id, fn, in, out) \
	[IB_USER_VERBS_CMD_##id] = {ROW_MEMBERS(id, fn, in, out), .unlocked = true}
#define ROW_OBJECT(id, fn, in, out, type, handle)                                      \
	[IB_USER_VERBS_CMD_##id] = {ROW_MEMBERS(id, fn, in, out), .object_type = type, \
				    .handle_offset = HANDLE_OFFSET(in, handle)}
#define REPLY(out) sizeof(struct ib_uverbs_##out)

static int cmd_post_send(const struct command *c);

static const struct command_row rows[] = {
	ROW_UNLOCKED(GET_CONTEXT, get_context, get_context, REPLY(get_context_resp)),
	ROW(QUERY_DEVICE, query_device, query_device, REPLY(query_device_resp)),
	ROW(QUERY_PORT, query_port, query_port, REPLY(query_port_resp)),
	ROW_UNLOCKED(ALLOC_PD, alloc_pd, alloc_pd, REPLY(alloc_pd_resp)),
	ROW_OBJECT(DEALLOC_PD, dealloc_pd, dealloc_pd, 0, OBJECT_PD, pd_handle),
	ROW_UNLOCKED(CREATE_AH, create_ah, create_ah, REPLY(create_ah_resp)),
	ROW_OBJECT(DESTROY_AH, destroy_ah, destroy_ah, 0, OBJECT_AH, ah_handle),
	ROW_UNLOCKED(REG_MR, reg_mr, reg_mr, REPLY(reg_mr_resp)),
	ROW_UNLOCKED(REREG_MR, rereg_mr, rereg_mr, REPLY(rereg_mr_resp)),
	ROW_OBJECT(DEREG_MR, dereg_mr, dereg_mr, 0, OBJECT_MR, mr_handle),
	ROW_OBJECT(ALLOC_MW, alloc_mw, alloc_mw, REPLY(alloc_mw_resp), OBJECT_PD, pd_handle),
	ROW_OBJECT(DEALLOC_MW, dealloc_mw, dealloc_mw, 0, OBJECT_MW, mw_handle),
	ROW_UNLOCKED(CREATE_COMP_CHANNEL, create_comp_channel, create_comp_channel,
		     REPLY(create_comp_channel_resp)),
	ROW(CREATE_CQ, create_cq, create_cq, REPLY(create_cq_resp)),
	ROW(DESTROY_CQ, destroy_cq, destroy_cq, REPLY(destroy_cq_resp)),
	ROW_UNLOCKED(RESIZE_CQ, resize_cq, resize_cq, REPLY(resize_cq_resp)),
	ROW_OBJECT(REQ_NOTIFY_CQ, req_notify_cq, req_notify_cq, 0, OBJECT_CQ, cq_handle),
	ROW_UNLOCKED(CREATE_QP, create_qp, create_qp, REPLY(create_qp_resp)),
	ROW_UNLOCKED(QUERY_QP, query_qp, query_qp, REPLY(query_qp_resp)),
	ROW_UNLOCKED(MODIFY_QP, modify_qp, modify_qp, 0),
	ROW_UNLOCKED(DESTROY_QP, destroy_qp, destroy_qp, REPLY(destroy_qp_resp)),
	ROW_UNLOCKED(POST_SEND, post_send, post_send, REPLY(post_send_resp)),
	ROW_UNLOCKED(ATTACH_MCAST, attach_mcast, attach_mcast, 0),
	ROW_UNLOCKED(DETACH_MCAST, detach_mcast, detach_mcast, 0),
	ROW_OBJECT(CREATE_SRQ, create_srq, create_srq, REPLY(create_srq_resp), OBJECT_PD,
		   pd_handle),
	ROW_OBJECT(MODIFY_SRQ, modify_srq, modify_srq, 0, OBJECT_SRQ, srq_handle),
	ROW_OBJECT(QUERY_SRQ, query_srq, query_srq, REPLY(query_srq_resp), OBJECT_SRQ, srq_handle),
	ROW_OBJECT(DESTROY_SRQ, destroy_srq, destroy_srq, REPLY(destroy_srq_resp), OBJECT_SRQ,
		   srq_handle),
};

/* Minimum bytes of the program's buffer for an extended response: up to response_length inclusive.
 */
#define REPLY_EX(out) (offsetof(struct ib_uverbs_ex_##out, response_length) + sizeof(uint32_t))
#define ROW_EX(id, fn, in, out, min_in, is_unlocked)                                 \
	[IB_USER_VERBS_EX_CMD_##id] = {.name = "EX_" #id,                            \
				       .handler = cmd_##fn##_ex,                     \
				       .request_size = REQUEST_SIZE(ex_##in),        \
				       .in_size = sizeof(struct ib_uverbs_##min_in), \
				       .out_size = REPLY_EX(out),                    \
				       .unlocked = is_unlocked}

static const struct command_row rows_ex[] = {
	ROW_EX(QUERY_DEVICE, query_device, query_device, query_device_resp, ex_query_device, false),
	ROW_EX(CREATE_CQ, create_cq, create_cq, create_cq_resp, ex_create_cq, false),
	ROW_EX(CREATE_QP, create_qp, create_qp, create_qp_resp, ex_create_qp, true),
	ROW_EX(MODIFY_QP, modify_qp, modify_qp, modify_qp_resp, modify_qp, true),
};

static const struct command_row *find_row(uint32_t command)
{
	uint32_t number = command & IB_USER_VERBS_CMD_COMMAND_MASK;
	const struct command_row *row = NULL;

	if (command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		row = number < sizeof(rows_ex) / sizeof(rows_ex[0]) ? &rows_ex[number] : NULL;
	else
		row = number < sizeof(rows) / sizeof(rows[0]) ? &rows[number] : NULL;
	if (row && row->handler)
		return row;
	log_debug("command %#x is not supported", command);
	return NULL;
}

/* Does the checks of the kernel's verify_hdr (drivers/infiniband/core/uverbs_main.c), and sets the
 * addresses and sizes in *c. 0 or a negative errno value. */
static int parse_command(struct command *c, const struct command_row *row, const uint8_t *request,
			 uint32_t count)
{
	const struct ib_uverbs_cmd_hdr *hdr = (const void *)request;

	if (hdr->in_words * 4u != count)
		return -EINVAL;
	if (count - sizeof(*hdr) < row->in_size || hdr->out_words * 4u < row->out_size)
		return -ENOSPC;
	c->in = request + sizeof(*hdr);
	c->in_size = row->in_size;
	c->driver_in = c->in + c->in_size;
	c->driver_in_size = (uint32_t)(count - sizeof(*hdr) - c->in_size);
	if (!row->out_size)
		return 0;
	/* A request that has a response begins with the program's address for it. */
	memcpy(&c->out, c->in, sizeof(c->out));
	c->out_size = row->out_size;
	c->driver_out = c->out + row->out_size;
	c->driver_out_size = hdr->out_words * 4u - row->out_size;
	return c->out ? 0 : -EFAULT;
}

static int parse_command_ex(struct command *c, const struct command_row *row,
			    const uint8_t *request, uint32_t count)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	uint32_t headers = sizeof(hdr) + sizeof(ex);

	if (count < headers)
		return -EINVAL;
	memcpy(&hdr, request, sizeof(hdr));
	memcpy(&ex, request + sizeof(hdr), sizeof(ex));
	if ((hdr.in_words + ex.provider_in_words) * 8u != count - headers || ex.cmd_hdr_reserved)
		return -EINVAL;
	if (hdr.in_words * 8u < row->in_size)
		return -ENOSPC;
	if (!ex.response != !(hdr.out_words + ex.provider_out_words))
		return -EINVAL;
	if (ex.response && hdr.out_words * 8u < row->out_size)
		return -ENOSPC;
	c->extended = true;
	c->in = request + headers;
	c->in_size = hdr.in_words * 8u;
	c->driver_in = c->in + c->in_size;
	c->driver_in_size = ex.provider_in_words * 8u;
	c->out = ex.response;
	c->out_size = hdr.out_words * 8u;
	c->driver_out = ex.response + c->out_size;
	c->driver_out_size = ex.provider_out_words * 8u;
	return 0;
}

int command_reply(const struct command *c, const void *reply, uint32_t size)
{
	return uaccess_write(c->out, reply, c->out_size < size ? c->out_size : size);
}

int command_reply_driver(const struct command *c, const void *reply, uint32_t size)
{
	return uaccess_write(c->driver_out, reply,
			     c->driver_out_size < size ? c->driver_out_size : size);
}

int command_lock(const struct command *c)
{
	int rc = -EIO;

	adapter_lock();
	if (c->file->live && !adapter.dead)
		rc = c->file->async ? 0 : -EINVAL;
	if (rc)
		adapter_unlock();
	return rc;
}

int command_add_object(const struct command *c, struct object *object, enum object_type type,
		       uint64_t user_handle)
{
	object->type = type;
	object->users = 0;
	object->user_handle = user_handle;
	object->file = c->file;
	return handle_add(&c->file->handles, object);
}

int command_pause(const struct command *c)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	adapter_unlock();
	nanosleep(&pause, NULL);
	adapter_lock();
	return c->file->live && !adapter.dead ? 0 : -EIO;
}

int command_forbid_unlock(struct hca *hca)
{
	bool more;

	if (!hca)
		return 0;
	more = hca_forbid_unlock(hca);
	if (!adapter.dev)
		return -EIO;
	adapter_publish();
	if (more)
		engine_wake();
	return 0;
}

/* Copies the request into the handler's structure. 0; -EOPNOTSUPP: the request is longer, and not
 * all bytes behind that structure are 0. */
static int copy_request(struct command *c, uint32_t size)
{
	uint32_t n = c->in_size < size ? c->in_size : size;

	memset(c->request, 0, size);
	memcpy(c->request, c->in, n);
	for (uint32_t i = n; i < c->in_size; i++)
		if (c->in[i])
			return -EOPNOTSUPP;
	return 0;
}

static int find_object(struct command *c, const struct command_row *row)
{
	uint32_t handle;

	memcpy(&handle, (const uint8_t *)c->request + row->handle_offset, sizeof(handle));
	c->object = command_object(c, row->object_type, handle);
	return c->object ? 0 : command_object_error(c, handle);
}

static int call_handler(struct command *c, const struct command_row *row)
{
	int rc = copy_request(c, row->request_size);

	if (!rc && row->object_type)
		rc = find_object(c, row);
	return rc ? rc : row->handler(c);
}

static int run_handler(struct command *c, const struct command_row *row)
{
	uint8_t request[REQUEST_MAX] __attribute__((aligned(8)));
	int rc;

	c->request = request;
	if (row->unlocked)
		return call_handler(c, row);
	rc = command_lock(c);
	if (rc)
		return rc;
	adapter_defer_destruction();
	rc = call_handler(c, row);
	adapter_unlock_settled();
	return rc;
}

/* Runs the command as a user of the context, whose objects stay meanwhile even if another thread
 * closes the device. Returns the handler's result; -EIO: the objects are destroyed already. */
static int run_counted(struct command *c, const struct command_row *row)
{
	int rc;

	if (!uverbs_file_get(c->file))
		return -EIO;
	rc = run_handler(c, row);
	uverbs_file_put(c->file);
	return rc;
}

static int dispatch_uverbs_command(struct uverbs_file *file, int fd, uint64_t buf, uint32_t count)
{
	uint8_t request[REQUEST_MAX] __attribute__((aligned(8)));
	struct command c = {.file = file, .fd = fd};
	const struct ib_uverbs_cmd_hdr *hdr = (const void *)request;
	const struct command_row *row;
	int cancel, rc = uaccess_read(request, buf, count);

	if (rc)
		return rc;
	if (hdr->command & ~(IB_USER_VERBS_CMD_COMMAND_MASK | IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return -EINVAL;
	row = find_row(hdr->command);
	if (!row)
		return -EOPNOTSUPP;
	rc = hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED
		     ? parse_command_ex(&c, row, request, count)
		     : parse_command(&c, row, request, count);
	if (!rc) {
		cancel = cancellation_disable();
		rc = run_counted(&c, row);
		cancellation_restore(cancel);
	}
	log_debug("%s: %s", row->name, rc ? strerror(-rc) : "ok");
	return rc;
}

/* The QP of the handle. With the lock. NULL: the device is dead or closed, or has no such QP. */
static struct qp *find_live_qp(const struct uverbs_file *file, uint32_t handle)
{
	if (!file->live || adapter.dead)
		return NULL;
	return (struct qp *)handle_find(&file->handles, OBJECT_QP, handle);
}

/* Reads the pages of the segments that lie in regions. `on_demand`: of all segments, because the
 * process has on-demand regions, which are not in the index of mr_index.h. */
static void touch_memory(const struct urxe_seg *segs, uint32_t n, bool on_demand)
{
	for (uint32_t i = 0; i < n; i++)
		if (on_demand || mr_index_overlaps(segs[i].addr, segs[i].length))
			uaccess_touch(segs[i].addr, segs[i].length);
}

/*
 * Reads the pages of all new send requests of the queue pair, for a program that handles page
 * faults by userfaultfd(2). Called with adapter.lock, which it releases while it reads. The
 * engine's access to a missing page would wait, with the lock held, for the program's handler. That
 * handler may call functions that need the lock.
 */
static void touch_posted(const struct uverbs_file *file, uint32_t handle)
{
	const struct qp *qp = find_live_qp(file, handle);
	uint32_t at = qp ? qp->sq.cursor : 0;
	struct send_request request;

	while (qp && qp_read_posted(qp, &at, &request)) {
		bool on_demand = adapter.on_demand_mrs;

		adapter_unlock();
		touch_memory(request.segs, request.wr.n_segs, on_demand);
		adapter_lock();
		qp = find_live_qp(file, handle);
	}
}

/* Posts the new send requests in the queue pair's ring to the engine, and sends their packets.
 * librxe puts the requests into the ring and sends POST_SEND without requests, as a doorbell. 0;
 * -EOPNOTSUPP: the command contains requests; or another negative errno value. */
static int ring_doorbell(struct uverbs_file *file, const struct ib_uverbs_post_send *post)
{
	uint64_t now = clock_now(), away;
	struct qp *qp;
	int rc = -EIO;

	if (post->wr_count || post->sge_count)
		return -EOPNOTSUPP;
	if (post->wqe_size < sizeof(struct ib_uverbs_send_wr))
		return -EINVAL;
	away = polling_entered(now);
	adapter_lock();
	polling_posted(away);
	if (peers_refusing(&adapter_peers)) {
		touch_posted(file, post->qp_handle);
		now = clock_now();
	}
	if (file->live && !adapter.dead) {
		qp = (struct qp *)handle_find(&file->handles, OBJECT_QP, post->qp_handle);
		rc = qp ? qp_doorbell(qp) : handle_error(&file->handles, post->qp_handle);
		if (!rc)
			urxe_qp_execute(qp->qp, now);
		/* The HCA has the requests of an offloaded queue pair: the engine has no frames. */
		if (rc || !urxe_qp_offloaded(qp->qp))
			engine_transmit(now);
		adapter_publish();
		engine_wake_for_work();
	}
	adapter_unlock();
	return rc;
}

static int cmd_post_send(const struct command *c)
{
	const struct ib_uverbs_post_send_resp reply = {0};
	int rc = ring_doorbell(c->file, c->request);

	return rc ? rc : command_reply(c, &reply, sizeof(reply));
}

struct doorbell {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send post;
};

/* Whether the command is exactly librxe's doorbell. */
static bool is_doorbell(const struct doorbell *doorbell, size_t count)
{
	return count == sizeof(*doorbell) && doorbell->hdr.command == IB_USER_VERBS_CMD_POST_SEND &&
	       doorbell->hdr.in_words == sizeof(*doorbell) / 4 &&
	       doorbell->hdr.out_words == sizeof(struct ib_uverbs_post_send_resp) / 4;
}

ssize_t uverbs_write(struct uverbs_file *file, int fd, const void *buf, size_t count)
{
	const struct doorbell *doorbell = buf;
	int rc;

	/* Fast path: does not copy the command, and writes no response, because librxe ignores it.
	 * If `buf` is a bad address, the thread gets SIGSEGV instead of EFAULT: uaccess_read would
	 * take more than 40 instructions for each doorbell. */
	if (is_doorbell(doorbell, count))
		rc = ring_doorbell(file, &doorbell->post);
	else if (count < sizeof(struct ib_uverbs_cmd_hdr) || count > REQUEST_MAX)
		rc = -EINVAL;
	else
		rc = dispatch_uverbs_command(file, fd, (uint64_t)(uintptr_t)buf, (uint32_t)count);
	if (!rc)
		return (ssize_t)count;
	errno = -rc;
	return -1;
}
