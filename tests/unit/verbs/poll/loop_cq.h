/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A context of the adapter of loop_adapter.h, with one CQ whose ring the test reads. */
#ifndef URXE_TESTS_UNIT_VERBS_POLL_LOOP_CQ_H
#define URXE_TESTS_UNIT_VERBS_POLL_LOOP_CQ_H

#include <sys/mman.h>
#include <unistd.h>

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>

#include "loop_adapter.h"
#include "objects/uverbs_file.h"
#include "queues/verbs_cq.h"

#define LOOP_CQ_MEMFD (1u << 26) /* bytes */

struct loop_cq {
	struct vnic_loop *loop;
	int memfd;
	struct uverbs_file context;
	struct cq cq;
};

static inline void loop_cq_open(struct loop_cq *l, uint16_t mtu, uint32_t entries, uint64_t handle)
{
	l->loop = loop_adapter_open(mtu);
	l->memfd = memfd_create("rings", MFD_CLOEXEC);
	assert_int_equal(ftruncate(l->memfd, LOOP_CQ_MEMFD), 0);
	l->context = (struct uverbs_file){.live = true, .queues = {.top = LOOP_CQ_MEMFD}};
	l->cq = (struct cq){
		.object = {.type = OBJECT_CQ, .user_handle = handle, .file = &l->context},
	};
	assert_int_equal(queue_create(&l->cq.ring, &l->context.queues, l->memfd, entries,
				      sizeof(struct ib_uverbs_wc)),
			 0);
	assert_int_equal(urxe_cq_create(adapter.dev, &l->cq, &l->cq.cq), 0);
}

/* The test has destroyed its queue pairs. */
static inline void loop_cq_close(struct loop_cq *l)
{
	urxe_cq_destroy(l->cq.cq);
	queue_destroy(&l->cq.ring, &l->context.queues);
	ring_space_close(&l->context.queues);
	close(l->memfd);
	loop_adapter_close(l->loop);
}

#endif
