/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/librxe_ring.h"

#include <errno.h>
#include <unistd.h>

_Static_assert(offsetof(struct rxe_queue_buf, data) == 384, "librxe's ring layout");

static uint32_t log2_at_least(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

/* Bytes of a ring in the memfd: whole pages. */
static uint64_t ring_size(uint32_t mask, uint32_t shift)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct rxe_queue_buf) + (((uint64_t)mask + 1) << shift) + page - 1) &
	       ~(page - 1);
}

int queue_create(struct queue *queue, struct ring_space *space, int memfd, uint32_t elements,
		 uint32_t element_size)
{
	uint32_t mask = (1u << log2_at_least(elements + 1)) - 1;
	/* At least one cache line, as in the kernel's rings. */
	uint32_t shift = log2_at_least(element_size < 64 ? 64 : element_size);
	uint64_t size = ring_size(mask, shift);
	void *buf;

	buf = size <= UINT32_MAX ? ring_space_take(space, memfd, size) : NULL;
	if (!buf)
		return -ENOMEM;
	*queue = (struct queue){.buf = buf, .offset = space->offset, .mask = mask, .shift = shift};
	queue->buf->log2_elem_size = shift;
	queue->buf->index_mask = queue->mask;
	return 0;
}

uint64_t queue_bytes(const struct queue *queue)
{
	return ring_size(queue->mask, queue->shift);
}

void queue_destroy(struct queue *queue, struct ring_space *space)
{
	if (!queue->buf)
		return;
	ring_space_release(space, queue->offset, queue->buf, queue_bytes(queue));
	*queue = (struct queue){0};
}

struct mminfo queue_mminfo(const struct queue *queue)
{
	if (!queue->buf)
		return (struct mminfo){0};
	return (struct mminfo){.offset = queue->offset,
			       .size = (uint32_t)ring_size(queue->mask, queue->shift)};
}

void work_queue_drop(struct work_queue *wq, uint32_t retired)
{
	wq->cursor = queue_producer(&wq->ring);
	wq->base = wq->cursor - retired;
	wq->released = wq->cursor;
	queue_set_consumer(&wq->ring, wq->released);
}

void work_queue_move(struct work_queue *wq, const struct queue *ring, uint32_t retired,
		     struct ring_space *space)
{
	uint32_t outstanding = wq->cursor - wq->base - retired;

	queue_destroy(&wq->ring, space);
	wq->ring = *ring;
	wq->cursor = outstanding;
	wq->base = -retired;
	wq->released = 0;
	queue_set_producer(&wq->ring, outstanding);
}
