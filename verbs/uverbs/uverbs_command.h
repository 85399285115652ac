/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handlers of the commands of the uverbs write() ABI (rdma/ib_user_verbs.h), for the table in
 * uverbs.c.
 *
 * A handler returns 0 or a negative errno value, with which write(2) fails. It runs with
 * adapter.lock, after the checks of command_lock. A handler whose row in uverbs.c is `unlocked`
 * runs without the lock and the checks. It calls command_lock itself, except GET_CONTEXT and
 * POST_SEND, which make their own checks.
 */
#ifndef URXE_VERBS_UVERBS_UVERBS_COMMAND_H
#define URXE_VERBS_UVERBS_UVERBS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

#include "objects/handle.h"
#include "objects/uverbs_file.h"

struct ib_uverbs_attr;

struct command {
	struct uverbs_file *file;
	int fd; /* the open device: a memfd, which holds the context's rings */
	bool extended;
	/* The core's request: the structure that the row in uverbs.c names. The handler may change
	 * it. A shorter request is padded with zeros. */
	void *request;
	/* The object whose handle is in the request, if the row in uverbs.c is a ROW_OBJECT; NULL
	 * for other rows. */
	struct object *object;
	/* `in`: the core's part of the request as sent; `out`: the program's address for the core's
	 * response. driver_...: the same for the provider's part. Sizes in bytes. */
	const uint8_t *in;
	uint32_t in_size;
	uint64_t out;
	uint32_t out_size;
	const uint8_t *driver_in;
	uint32_t driver_in_size;
	uint64_t driver_out;
	uint32_t driver_out_size;
};

/* Write the core's (command_reply) or the provider's (command_reply_driver) response of `size`
 * bytes to the program's memory. A response longer than out_size or driver_out_size is truncated.
 * 0, or -EFAULT: the program's address is bad. */
int command_reply(const struct command *c, const void *reply, uint32_t size);
int command_reply_driver(const struct command *c, const void *reply, uint32_t size);

/* Takes adapter.lock, for handlers that run without it. Returns 0 with the lock held. After an
 * error the lock is free. -EIO: the context is closed or inherited through fork, or the device is
 * dead. -EINVAL: the program has not sent GET_CONTEXT, before which no other command is valid. */
int command_lock(const struct command *c);

/* The object of the command's context; NULL: the handle names no object of that type. */
static inline struct object *command_object(const struct command *c, enum object_type type,
					    uint32_t handle)
{
	return handle_find(&c->file->handles, type, handle);
}

/* The error for the program after command_object has returned NULL: -ENOENT or -EINVAL
 * (handle_error). */
static inline int command_object_error(const struct command *c, uint32_t handle)
{
	return handle_error(&c->file->handles, handle);
}

/* Initialises the object and gives it a handle of the command's context. `user_handle`: the
 * program's name for the object in events. 0 or a negative errno value (handle_add). */
int command_add_object(const struct command *c, struct object *object, enum object_type type,
		       uint64_t user_handle);

/*
 * One round of a wait for another thread's command: releases adapter.lock, sleeps 50 us, and takes
 * the lock again, also if the result is -EIO. The caller then tests whether that command has ended.
 * The wait uses no condition variable: if a signal handler forks during the wait, no thread of the
 * child would signal the variable. 0, or -EIO: the context is closed, the device is dead, or the
 * caller runs in such a child.
 */
int command_pause(const struct command *c);
/*
 * Ends what adapter_allow_unlock() began, after an operation of the HCA: from now on the engine
 * does not release adapter.lock. `hca`: the result of adapter_allow_unlock(); NULL: no effect, 0.
 * Makes the completions visible that came during the operation. If more completions are at the HCA,
 * wakes the engine thread to take them. 0, or -EIO: a signal handler has forked meanwhile, and the
 * caller runs in the child, which has no adapter. The command then ends at once: its objects, and
 * the memory of its rings, are the parent's.
 */
int command_forbid_unlock(struct hca *hca);

int cmd_get_context(const struct command *c);
int cmd_query_device(const struct command *c);
int cmd_query_device_ex(const struct command *c);
int cmd_query_port(const struct command *c);
int cmd_alloc_pd(const struct command *c);
int cmd_dealloc_pd(const struct command *c);
int cmd_create_ah(const struct command *c);
int cmd_destroy_ah(const struct command *c);
int cmd_reg_mr(const struct command *c);
int cmd_rereg_mr(const struct command *c);
int cmd_dereg_mr(const struct command *c);
int cmd_alloc_mw(const struct command *c);
int cmd_dealloc_mw(const struct command *c);
int cmd_create_comp_channel(const struct command *c);
int cmd_create_cq(const struct command *c);
int cmd_create_cq_ex(const struct command *c);
int cmd_resize_cq(const struct command *c);
int cmd_req_notify_cq(const struct command *c);
int cmd_destroy_cq(const struct command *c);
int cmd_create_qp(const struct command *c);
int cmd_create_qp_ex(const struct command *c);
int cmd_query_qp(const struct command *c);
int cmd_modify_qp(const struct command *c);
int cmd_modify_qp_ex(const struct command *c);
int cmd_destroy_qp(const struct command *c);
int cmd_attach_mcast(const struct command *c);
int cmd_detach_mcast(const struct command *c);
int cmd_create_srq(const struct command *c);
int cmd_modify_srq(const struct command *c);
int cmd_query_srq(const struct command *c);
int cmd_destroy_srq(const struct command *c);

/* ADVISE_MR, a command of ioctl(2) instead of write(2): runs without adapter.lock. `attrs`: the
 * command's attributes, indexed by their IDs; len and data of a missing one are 0. 0 or a negative
 * errno value. */
int cmd_advise_mr(struct uverbs_file *file, const struct ib_uverbs_attr *attrs);

#endif
