/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An open uverbs device: the context of its commands. For the interposed open(2) and all of
 * uverbs/.
 */
#ifndef URXE_VERBS_UVERBS_UCONTEXT_H
#define URXE_VERBS_UVERBS_UCONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "process/own_fd.h"
#include "queues/comp_channel.h"
#include "queues/ring.h"
#include "uverbs/handle.h"

struct ibv_cq;
struct ibv_cq_ex;
struct ibv_wc;
struct ibv_poll_cq_attr;
struct ibv_qp;
struct ibv_recv_wr;
struct ibv_srq;

struct uverbs_file {
	struct fd_object fd;
	/* Under the port's lock. */
	bool live; /* neither closed nor inherited through fork */
	struct handle_table handles;
	struct ring_space queues;
	struct comp_channel *async; /* NULL before GET_CONTEXT */
	LIST_ENTRY(uverbs_file) link;
	/* librxe's functions, which poll_hook.c has replaced. */
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	atomic_int poll_ends; /* enum poll_ends of poll_hook.c */
};
LIST_HEAD(uverbs_file_list, uverbs_file);

/* Opens the device: a descriptor, or a negative errno value. */
int uverbs_file_open(int flags);

/*
 * A context that is not live, without objects and descriptors; NULL: no memory. Without the lock of
 * the port. uverbs_file_free is for one that never got a descriptor; release by fd_remove frees the
 * others.
 */
struct uverbs_file *uverbs_file_alloc(void);
void uverbs_file_free(struct uverbs_file *file);
/* A memfd for the rings of a context, with O_CLOEXEC or not; a negative errno value. */
int uverbs_file_memfd(int flags, uint64_t size);

static inline struct uverbs_file *uverbs_file_lookup(int fd)
{
	struct fd_object *object = fd_lookup(fd);

	return object && object->kind == FD_UVERBS ? (struct uverbs_file *)object : 0;
}

/* Sends an asynchronous event about `element`, a user handle or a port. */
void uverbs_file_event(struct uverbs_file *file, uint64_t element, uint32_t type);

#endif
