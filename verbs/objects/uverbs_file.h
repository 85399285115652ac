/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An open uverbs device: the context of its commands. */
#ifndef URXE_VERBS_OBJECTS_UVERBS_FILE_H
#define URXE_VERBS_OBJECTS_UVERBS_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "adapter/adapter.h"
#include "memory/ring_slab.h"
#include "objects/comp_channel.h"
#include "objects/handle.h"
#include "process/emulated_fd.h"

struct ibv_cq;
struct ibv_cq_ex;
struct ibv_wc;
struct ibv_poll_cq_attr;
struct ibv_qp;
struct ibv_recv_wr;
struct ibv_srq;

struct uverbs_file {
	struct fd_object fd;
	/* One for all descriptors together, and one for each running command. The thread that makes
	 * this 0 destroys the context's objects. */
	atomic_uint users;
	/* Only a thread that holds adapter.lock accesses the members from here to `link`. */
	bool live; /* the context is neither closed nor inherited through fork */
	/* The value of `live` when the program closed the last descriptor; false in a forked child.
	 */
	bool was_live;
	uint32_t fork_generation; /* the value that adapter_open() set, for adapter_unref() */
	struct handle_table handles;
	struct ring_space queues;
	struct comp_channel *async;        /* NULL before GET_CONTEXT */
	struct comp_channel_list channels; /* completion channels, also those that the program
					    has closed while one of its threads reads there */
	LIST_ENTRY(uverbs_file) link;
	/*
	 * librxe's functions, which poll_hook.c and recv_hook.c have replaced; NULL: not replaced.
	 * They are stored before the hooks are, with uverbs_file_publish_hooks in between.
	 */
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	atomic_int poll_ends; /* values of enum poll_ends in poll_hook.c */
};

/* The context of a descriptor; NULL: the descriptor is no uverbs device. Any thread; no lock. */
static inline struct uverbs_file *uverbs_file_lookup(int fd)
{
	struct fd_object *object = fd_lookup(fd);

	return object && object->kind == FD_UVERBS ? (struct uverbs_file *)object : 0;
}

/*
 * Has adapter_publish() send the object's context an asynchronous event about the object. A program
 * that then polls a CQ until it is empty has all completions that precede the event (IBA 11.6.3).
 * False: the program will not get the event. With adapter.lock.
 */
bool uverbs_object_event(const struct object *object, uint32_t type);
/*
 * Sends the context an asynchronous event about `element`: the number of a port, or 0 for the
 * device. With adapter.lock.
 */
void uverbs_file_event(struct uverbs_file *file, uint64_t element, uint32_t type);

/*
 * uverbs_file_publish_hooks: call it after librxe's functions are stored in struct uverbs_file, and
 * before the hooks are stored in the ibv_context. A thread of the program may call a hook at once,
 * without a lock. The hook gets the context by uverbs_file_of_hook, and then finds librxe's
 * functions there. uverbs_file_of_hook returns NULL if the descriptor is no uverbs device.
 */
static inline void uverbs_file_publish_hooks(void)
{
	atomic_thread_fence(memory_order_release);
}

static inline struct uverbs_file *uverbs_file_of_hook(int fd)
{
	atomic_thread_fence(memory_order_acquire);
	return uverbs_file_lookup(fd);
}

#endif
