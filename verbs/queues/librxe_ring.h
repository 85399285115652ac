/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings that librxe maps (rdma/rdma_user_rxe.h), in the context's memfd.
 *
 * The application can write to all of a ring at any time. So size and mask are kept outside the
 * ring, and its indices are masked.
 */
#ifndef URXE_VERBS_QUEUES_LIBRXE_RING_H
#define URXE_VERBS_QUEUES_LIBRXE_RING_H

#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>

#include "memory/ring_slab.h"

struct queue {
	struct rxe_queue_buf *buf;
	uint64_t offset;
	uint32_t mask;
	uint32_t shift; /* log2 of an element's bytes */
};

/* Creates a ring for at least `elements` of `element_size` bytes. */
int queue_create(struct queue *queue, struct ring_space *space, int memfd, uint32_t elements,
		 uint32_t element_size);
/* Bytes of a ring in the memfd: whole pages. */
uint64_t queue_bytes(const struct queue *queue);
/* In the space that it was created in; without effect if the queue has no ring. */
void queue_destroy(struct queue *queue, struct ring_space *space);
/* Entries that fit; one slot stays empty, to tell a full ring from an empty one. */
static inline uint32_t queue_capacity(const struct queue *queue)
{
	return queue->mask;
}

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

/* A work queue: a ring, and its position relative to the engine's count of requests. */
struct work_queue {
	struct queue ring;
	uint32_t cursor;   /* next entry to post to the engine, free-running */
	uint32_t base;     /* ring index = base + the engine's count of retired requests */
	uint32_t released; /* index of the last release to the application */
};

/* Entries that the application has added and the engine does not have yet. */
static inline uint32_t work_queue_posted(const struct work_queue *wq)
{
	return (queue_producer(&wq->ring) - wq->cursor) & wq->ring.mask;
}

/*
 * Releases the slots of retired requests to the application. Without new ones, the ring is not
 * touched: with many queues it is in no cache.
 */
static inline void work_queue_release(struct work_queue *wq, uint32_t retired)
{
	uint32_t index = wq->base + retired;

	if (index == wq->released)
		return;
	wq->released = index;
	queue_set_consumer(&wq->ring, index);
}

/*
 * Replaces the ring, once all entries were posted. Requests that the engine has not retired keep
 * their slots.
 */
void work_queue_move(struct work_queue *wq, const struct queue *ring, uint32_t retired,
		     struct ring_space *space);

/* Drops all entries; `retired` is the engine's count, and the engine has no request outstanding. */
void work_queue_drop(struct work_queue *wq, uint32_t retired);

#endif
