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
 * Buffers that the thread that started the EAL has at hand: the next one that it takes is the last
 * that it gave back, and is in its processor's caches. Without these the pool is a queue, and each
 * buffer the one that has been left alone for longest.
 */
#define AT_HAND 256u

/* A mempool may keep half as many again, where nobody else gets them. */
#define KEPT (AT_HAND * 3 / 2)

/* What a pool is to be. Nobody asks for physical addresses where drivers copy. */
struct plan {
	const char *name;
	uint32_t n;
	uint32_t element; /* bytes of a packet buffer with its mbuf */
	uint32_t flags;
	int socket;
};

/* Memory in one piece, and how it is given back; `opaque` is for that. */
struct piece {
	void *memory;
	size_t size;
	rte_mempool_memchunk_free_cb_t *free;
	void *opaque;
};

static size_t size_of(const struct plan *plan)
{
	return (size_t)plan->n * rte_mempool_calc_obj_size(plan->element, plan->flags, NULL);
}

static void free_huge(struct rte_mempool_memhdr *chunk, void *opaque)
{
	(void)opaque;
	huge_pages_unmap(chunk->addr, chunk->len);
}

static bool get_huge(const struct plan *plan, struct piece *piece)
{
	const size_t size = size_of(plan);

	*piece = (struct piece){.memory = huge_pages_map(size), .size = size, .free = free_huge};
	return piece->memory;
}

static void free_zone(struct rte_mempool_memhdr *chunk, void *zone)
{
	(void)chunk;
	rte_memzone_free(zone);
}

static bool get_zone(const struct plan *plan, struct piece *piece)
{
	const struct rte_memzone *zone = rte_memzone_reserve_aligned(
		plan->name, size_of(plan), plan->socket, 0, (unsigned int)sysconf(_SC_PAGESIZE));

	if (!zone)
		return false;
	*piece = (struct piece){.memory = zone->addr,
				.size = zone->len,
				.free = free_zone,
				.opaque = (void *)(uintptr_t)zone};
	return true;
}

static void give_back(const struct piece *piece)
{
	struct rte_mempool_memhdr chunk = {.addr = piece->memory, .len = piece->size};

	piece->free(&chunk, piece->opaque);
}

/* A pool without memory yet; it has what rte_pktmbuf_pool_create gives. */
static struct rte_mempool *create_empty(const struct plan *plan)
{
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(plan->element - sizeof(struct rte_mbuf)),
	};
	struct rte_mempool *pool =
		rte_mempool_create_empty(plan->name, plan->n, plan->element, AT_HAND,
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

/* Takes the piece over, also where it fails. */
static struct rte_mempool *create_in(const struct plan *plan, const struct piece *piece)
{
	struct rte_mempool *pool = create_empty(plan);
	int added;

	if (!pool) {
		give_back(piece);
		return NULL;
	}
	added = rte_mempool_populate_iova(pool, piece->memory, RTE_BAD_IOVA, piece->size,
					  piece->free, piece->opaque);
	if (added <= 0)
		give_back(piece);
	if (added != (int)plan->n) {
		rte_mempool_free(pool);
		rte_errno = added < 0 ? -added : ENOMEM;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

static struct rte_mempool *create_copied(struct plan *plan, uint32_t room)
{
	struct piece piece;

	plan->element = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + room;
	plan->flags = RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	if (get_huge(plan, &piece))
		return create_in(plan, &piece);
	return rte_pktmbuf_pool_create(plan->name, plan->n, AT_HAND, 0, RTE_PKTMBUF_HEADROOM + room,
				       plan->socket);
}

/*
 * The driver registers as many bytes with the kernel as all buffers have together. A
 * pool of DPDK's own leaves gaps where a buffer would cross from page to page, and
 * what is behind those bytes the kernel refuses to send, without a word. So each
 * buffer is a page, of the usual size, and the first starts one.
 */
static struct rte_mempool *create_xdp(struct plan *plan)
{
	struct piece piece;

	plan->element = (uint32_t)sysconf(_SC_PAGESIZE) -
			RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_MEMPOOL_ALIGN);
	plan->flags = RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	if (get_huge(plan, &piece) || get_zone(plan, &piece))
		return create_in(plan, &piece);
	return NULL;
}

struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room,
				     enum dpdk_pool_use use, int socket)
{
	struct plan plan = {.name = name, .n = n + KEPT, .socket = socket};

	switch (use) {
	case DPDK_POOL_COPIED: return create_copied(&plan, room);
	case DPDK_POOL_XDP: return create_xdp(&plan);
	default:
		return rte_pktmbuf_pool_create(name, plan.n, AT_HAND, 0,
					       RTE_PKTMBUF_HEADROOM + room, socket);
	}
}

size_t dpdk_pool_page_size(struct rte_mempool *pool)
{
	const void *buffers = STAILQ_FIRST(&pool->mem_list)->addr;
	const struct rte_memseg *segment = rte_mem_virt2memseg(buffers, NULL);

	return segment ? segment->hugepage_sz : HUGE_PAGE_SIZE;
}
