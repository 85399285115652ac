/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAP_SIZE_MIN ((uint64_t)4 << 20)

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

void queue_space_unmap_rest(struct queue_space *space)
{
	if (space->mapped < space->offset)
		munmap(space->base, space->offset - space->mapped);
	space->mapped = space->offset;
}

/* Maps at least `size` bytes below the last ring. */
static int map_more(struct queue_space *space, int memfd, uint64_t size)
{
	uint64_t length = size > MAP_SIZE_MIN ? size : MAP_SIZE_MIN;
	void *base;

	if (length > space->offset)
		length = space->offset;
	base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
		    (off_t)(space->offset - length));
	if (base == MAP_FAILED)
		return -ENOMEM;
	queue_space_unmap_rest(space);
	space->base = base;
	space->mapped = space->offset - length;
	return 0;
}

/* Takes the next `size` bytes downwards. NULL: no address space or memory. */
static void *take_space(struct queue_space *space, int memfd, uint64_t size)
{
	if (size > space->offset)
		return NULL;
	if (size > space->offset - space->mapped && map_more(space, memfd, size))
		return NULL;
	space->offset -= size;
	return space->base + (space->offset - space->mapped);
}

int queue_create(struct queue *queue, struct queue_space *space, int memfd, uint32_t elements,
		 uint32_t element_size)
{
	uint32_t mask = (1u << log2_at_least(elements + 1)) - 1;
	/* At least one cache line, as in the kernel's rings. */
	uint32_t shift = log2_at_least(element_size < 64 ? 64 : element_size);
	uint64_t size = ring_size(mask, shift);
	void *buf;

	buf = size <= UINT32_MAX ? take_space(space, memfd, size) : NULL;
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

/* The offset is not used again, so the pages are freed. */
void queue_destroy(struct queue *queue)
{
	uint64_t size = ring_size(queue->mask, queue->shift);

	if (!queue->buf)
		return;
	madvise(queue->buf, size, MADV_REMOVE);
	munmap(queue->buf, size);
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

void work_queue_move(struct work_queue *wq, const struct queue *ring, uint32_t retired)
{
	uint32_t outstanding = wq->cursor - wq->base - retired;

	queue_destroy(&wq->ring);
	wq->ring = *ring;
	wq->cursor = outstanding;
	wq->base = -retired;
	wq->released = 0;
	queue_set_producer(&wq->ring, outstanding);
}
