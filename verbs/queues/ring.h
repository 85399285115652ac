/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings that librxe maps (rdma/rdma_user_rxe.h), in the context's memfd.
 *
 * The application can write all of a ring at any time. Size and mask are kept
 * here; of what the ring says only indices are used, and they are masked.
 */
#ifndef URXE_VERBS_QUEUES_RING_H
#define URXE_VERBS_QUEUES_RING_H

#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>

struct queue {
	struct rxe_queue_buf *buf;
	uint64_t offset;
	uint32_t mask;
	uint32_t shift; /* log2 of an element's bytes */
};

/*
 * Where a context's rings lie in its memfd, from the end down. The number of mappings of a
 * process is limited (vm.max_map_count), and there may be as many rings: librxe maps each
 * alone, and those at descending offsets merge into one mapping where the kernel places
 * mappings top-down; so that none of ours comes between, we map more than a ring at a time.
 */
struct queue_space {
	uint64_t offset; /* rings begin at this, or above */
	uint64_t mapped; /* what is mapped here begins at this, at or below offset */
	uint8_t *base;   /* its address */
};

/* Unmaps what no ring has taken. */
void queue_space_done(struct queue_space *space);

/* Makes a ring for at least `elements` of `element_size` bytes. */
int queue_create(struct queue *queue, struct queue_space *space, int memfd, uint32_t elements,
		 uint32_t element_size);
void queue_destroy(struct queue *queue);
/* Entries that fit; one slot stays empty to tell full from empty. */
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

/* A work queue: what was copied out of it, and where it stood when the engine counted from 0. */
struct work_queue {
	struct queue ring;
	uint32_t cursor; /* next entry to copy out, free-running */
	uint32_t base;   /* ring index = base + the engine's count of retired requests */
	uint32_t given;  /* the last such index that the application was told */
};

/* Entries that the application has added since. */
static inline uint32_t work_queue_new(const struct work_queue *wq)
{
	return (queue_producer(&wq->ring) - wq->cursor) & wq->ring.mask;
}

/* Gives the slots of retired requests back to the application. The ring is not touched for none:
 * of many queues it is in no cache. */
static inline void work_queue_retired(struct work_queue *wq, uint32_t retired)
{
	uint32_t index = wq->base + retired;

	if (index == wq->given)
		return;
	wq->given = index;
	queue_set_consumer(&wq->ring, index);
}

/*
 * Goes on in another ring, once all entries were copied out. Those that the engine
 * has not retired keep their places taken.
 */
void work_queue_move(struct work_queue *wq, const struct queue *ring, uint32_t retired);

/* Drops all entries; `retired` is the engine's count, which has nothing outstanding. */
void work_queue_drop(struct work_queue *wq, uint32_t retired);

#endif
