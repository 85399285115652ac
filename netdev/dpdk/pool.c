/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/pool.h"

#include <stdbool.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include "dpdk/huge_pages.h"

/*
 * Size of the mempool's cache for the EAL's thread, a stack: the next buffer is the one freed last,
 * whose lines are in the processor's caches. Without the stack, the pool is a queue, and the next
 * buffer is the one unused for longest.
 */
#define CACHE_SIZE 256u

/* Buffers that the cache may hold: rte_mempool flushes it at 1.5 times its size. */
#define CACHED_MAX (CACHE_SIZE * 3 / 2)

/* The parameters of a pool. */
struct plan {
	const char *name;
	uint32_t n;
	uint32_t element; /* bytes of an mbuf with its packet buffer */
	uint32_t flags;
	int socket;
};

/* One piece of memory with the function that frees it. */
struct piece {
	void *memory;
	size_t size;
	rte_mempool_memchunk_free_cb_t *free;
	void *opaque;
};

static size_t pool_size(const struct plan *plan)
{
	return (size_t)plan->n * rte_mempool_calc_obj_size(plan->element, plan->flags, NULL);
}

static void free_huge(struct rte_mempool_memhdr *chunk, void *opaque)
{
	(void)opaque;
	huge_pages_unmap(chunk->addr, chunk->len);
}

static bool map_huge(const struct plan *plan, struct piece *piece)
{
	const size_t size = pool_size(plan);

	*piece = (struct piece){.memory = huge_pages_map(size), .size = size, .free = free_huge};
	return piece->memory;
}

static void free_zone(struct rte_mempool_memhdr *chunk, void *zone)
{
	(void)chunk;
	rte_memzone_free(zone);
}

static bool reserve_zone(const struct plan *plan, struct piece *piece)
{
	const struct rte_memzone *zone = rte_memzone_reserve_aligned(
		plan->name, pool_size(plan), plan->socket, 0, (unsigned int)sysconf(_SC_PAGESIZE));

	if (!zone)
		return false;
	*piece = (struct piece){.memory = zone->addr,
				.size = zone->len,
				.free = free_zone,
				.opaque = (void *)(uintptr_t)zone};
	return true;
}

static void free_piece(const struct piece *piece)
{
	struct rte_mempool_memhdr chunk = {.addr = piece->memory, .len = piece->size};

	piece->free(&chunk, piece->opaque);
}

/* A pool without memory, initialized as rte_pktmbuf_pool_create does. */
static struct rte_mempool *create_empty(const struct plan *plan)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(plan->element - sizeof(struct rte_mbuf)),
	};
	struct rte_mempool *pool =
		rte_mempool_create_empty(plan->name, plan->n, plan->element, CACHE_SIZE,
					 sizeof(private), plan->socket, plan->flags);
	int err;

	if (!pool)
		return NULL;
	err = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (!err) {
		rte_pktmbuf_pool_init(pool, &private);
		return pool;
	}
	rte_mempool_free(pool);
	rte_errno = -err;
	return NULL;
}

/* Creates a pool whose memory is the piece. NULL: rte_errno has the error, and the piece is freed.
 */
static struct rte_mempool *create_in(const struct plan *plan, const struct piece *piece)
{
	struct rte_mempool *pool = create_empty(plan);
	int added;

	if (!pool) {
		free_piece(piece);
		return NULL;
	}
	added = rte_mempool_populate_iova(pool, piece->memory, RTE_BAD_IOVA, piece->size,
					  piece->free, piece->opaque);
	if (added <= 0)
		free_piece(piece);
	if (added != (int)plan->n) {
		rte_mempool_free(pool);
		rte_errno = added < 0 ? -added : ENOMEM;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

/* A pool for drivers that copy; NULL: rte_errno has the error. They need no physical addresses, so
 * the pages may be anywhere. */
static struct rte_mempool *create_copied(struct plan *plan, uint32_t room)
{
	struct piece piece;

	plan->element = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + room;
	plan->flags = RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	if (map_huge(plan, &piece))
		return create_in(plan, &piece);
	return rte_pktmbuf_pool_create(plan->name, plan->n, CACHE_SIZE, 0,
				       RTE_PKTMBUF_HEADROOM + room, plan->socket);
}

/*
 * A pool for the af_xdp driver; NULL: rte_errno has the error. The driver registers memory of the
 * buffers' total size with the kernel. A pool of DPDK's own leaves gaps so that no buffer crosses a
 * page, and the kernel silently sends no frame from a buffer behind the registered size. So each
 * buffer is exactly one page, without gaps.
 */
static struct rte_mempool *create_xdp(struct plan *plan)
{
	struct piece piece;

	plan->element = (uint32_t)sysconf(_SC_PAGESIZE) -
			RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_MEMPOOL_ALIGN);
	plan->flags = RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	if (map_huge(plan, &piece) || reserve_zone(plan, &piece))
		return create_in(plan, &piece);
	return NULL;
}

struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room,
				     enum dpdk_pool_use use, int socket)
{
	struct plan plan = {.name = name, .n = n + CACHED_MAX, .socket = socket};

	switch (use) {
	case DPDK_POOL_COPIED: return create_copied(&plan, room);
	case DPDK_POOL_XDP: return create_xdp(&plan);
	default:
		return rte_pktmbuf_pool_create(name, plan.n, CACHE_SIZE, 0,
					       RTE_PKTMBUF_HEADROOM + room, socket);
	}
}

static void keep_memory(struct rte_mempool_memhdr *chunk, void *opaque)
{
	(void)chunk;
	(void)opaque;
}

struct rte_mempool *dpdk_pool_create_in(const char *name, void *memory, size_t size, uint32_t room,
					int socket)
{
	const struct piece piece = {.memory = memory, .size = size, .free = keep_memory};
	struct plan plan = {.name = name, .socket = socket};

	plan.element = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + room;
	plan.flags = RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	plan.n = (uint32_t)((size - RTE_MEMPOOL_ALIGN) /
			    rte_mempool_calc_obj_size(plan.element, plan.flags, NULL));
	return create_in(&plan, &piece);
}

size_t dpdk_pool_page_size(struct rte_mempool *pool)
{
	const void *buffers = STAILQ_FIRST(&pool->mem_list)->addr;
	const struct rte_memseg *segment = rte_mem_virt2memseg(buffers, NULL);

	return segment ? segment->hugepage_sz : HUGE_PAGE_SIZE;
}
