/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings that librxe maps (rdma/rdma_user_rxe.h), in the context's memfd.
 *
 * The application can write to all of a ring at any time. So this library keeps size and mask
 * outside the ring, and masks the indices that it reads there.
 */
#ifndef URXE_VERBS_QUEUES_LIBRXE_RING_H
#define URXE_VERBS_QUEUES_LIBRXE_RING_H

#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>

#include "memory/ring_slab.h"

struct queue {
	struct rxe_queue_buf *buf; /* this library's mapping of the ring; NULL: no ring */
	uint64_t offset;           /* offset of the ring in the memfd, in bytes */
	uint32_t mask;             /* number of slots, a power of two, minus 1 */
	uint32_t shift;            /* log2 of an element's bytes */
};

/* Creates a ring of at least `elements` elements of `element_size` bytes each. Its memory is a part
 * of `space`, the ring memory of the context whose memfd is given. 0 or -ENOMEM. */
int queue_create(struct queue *queue, struct ring_space *space, int memfd, uint32_t elements,
		 uint32_t element_size);
/* The bytes of an element of a receive ring. */
static inline uint32_t queue_receive_bytes(uint32_t max_sge)
{
	return (uint32_t)sizeof(struct rxe_recv_wqe) + max_sge * (uint32_t)sizeof(struct rxe_sge);
}
/* The bytes that a ring takes in the memfd, a multiple of the page size. */
uint64_t queue_bytes(const struct queue *queue);
/* Destroys the ring. `space`: as for queue_create(). No effect if the queue has no ring. */
void queue_destroy(struct queue *queue, struct ring_space *space);
/* The number of elements that fit; one slot stays empty, to tell a full ring from an empty one. */
static inline uint32_t queue_capacity(const struct queue *queue)
{
	return queue->mask;
}

/* Offset and size of the ring in the memfd, for the response to a command: librxe maps the ring by
 * them. No ring: both 0. */
struct mminfo queue_mminfo(const struct queue *queue);

static inline void *queue_element(const struct queue *queue, uint32_t index)
{
	return queue->buf->data + ((size_t)(index & queue->mask) << queue->shift);
}

static inline uint32_t queue_producer(const struct queue *queue)
{
	return __atomic_load_n(&queue->buf->producer_index, __ATOMIC_ACQUIRE) & queue->mask;
}

static inline uint32_t queue_consumer(const struct queue *queue)
{
	return __atomic_load_n(&queue->buf->consumer_index, __ATOMIC_ACQUIRE) & queue->mask;
}

static inline void queue_set_producer(struct queue *queue, uint32_t index)
{
	__atomic_store_n(&queue->buf->producer_index, index & queue->mask, __ATOMIC_RELEASE);
}

static inline void queue_set_consumer(struct queue *queue, uint32_t index)
{
	__atomic_store_n(&queue->buf->consumer_index, index & queue->mask, __ATOMIC_RELEASE);
}

/* A send or receive queue: its ring, and how far the engine has taken the ring's entries. The
 * engine numbers the requests of a queue in the order in which they were posted to it. */
struct work_queue {
	struct queue ring;
	uint32_t cursor;   /* index, not masked, of the next entry to post to the engine */
	uint32_t base;     /* index of an entry = base + the engine's number of the request */
	uint32_t released; /* consumer index, not masked: the application may use the slots of all
			      entries before it */
};

/* The number of entries that the application has added and the engine does not have yet. */
static inline uint32_t work_queue_posted(const struct work_queue *wq)
{
	return (queue_producer(&wq->ring) - wq->cursor) & wq->ring.mask;
}

/* Releases to the application the slots of retired requests, which the engine no longer needs.
 * `retired`: how many requests the engine has retired so far. Does not touch the ring if that has
 * not grown: with many queues, a ring is in no cache. */
static inline void work_queue_release(struct work_queue *wq, uint32_t retired)
{
	uint32_t index = wq->base + retired;

	if (index == wq->released)
		return;
	wq->released = index;
	queue_set_consumer(&wq->ring, index);
}

/*
 * Replaces the ring by a new one in the same space, and destroys the old ring. All entries must
 * have been posted to the engine. Requests that it has not retired occupy the first slots of the
 * new ring. `retired`: how many requests the engine has retired so far.
 */
void work_queue_move(struct work_queue *wq, const struct queue *ring, uint32_t retired,
		     struct ring_space *space);

/* Drops all entries of the ring, after the QP was reset or refused them. The engine has no request
 * of the queue. `retired`: how many requests the engine has retired so far. */
void work_queue_drop(struct work_queue *wq, uint32_t retired);

#endif
