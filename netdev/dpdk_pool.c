/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk_pool.h"

#include <unistd.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memzone.h>

struct rte_mempool *dpdk_pool_create(const char *name, uint32_t n, uint32_t room, int socket)
{
	return rte_pktmbuf_pool_create(name, n, 0, 0, RTE_PKTMBUF_HEADROOM + room, socket);
}

static void free_zone(struct rte_mempool_memhdr *chunk, void *zone)
{
	(void)chunk;
	rte_memzone_free(zone);
}

static int populate(struct rte_mempool *pool, uint32_t page)
{
	const struct rte_memzone *zone;
	int added;

	zone = rte_memzone_reserve_aligned(pool->name, (size_t)pool->size * page, pool->socket_id,
					   0, page);
	if (!zone)
		return -rte_errno;
	added = rte_mempool_populate_iova(pool, zone->addr, RTE_BAD_IOVA, zone->len, free_zone,
					  (void *)(uintptr_t)zone);
	if (added <= 0)
		rte_memzone_free(zone);
	return added == (int)pool->size ? 0 : -ENOMEM;
}

/*
 * The driver registers as many bytes with the kernel as all buffers have together. A
 * pool of DPDK's own leaves gaps where a buffer would cross from page to page, and
 * what is behind those bytes the kernel refuses to send, without a word. So each
 * buffer is a page, and the first starts one.
 */
struct rte_mempool *dpdk_pool_create_xdp(const char *name, uint32_t n, int socket)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	const unsigned int flags = RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	const uint32_t element =
		page - RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_MEMPOOL_ALIGN);
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)(element - sizeof(struct rte_mbuf)),
	};
	struct rte_mempool *pool;
	int err;

	pool = rte_mempool_create_empty(name, n, element, 0, sizeof(private), socket, flags);
	if (!pool)
		return NULL;
	err = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (!err) {
		rte_pktmbuf_pool_init(pool, &private);
		err = populate(pool, page);
	}
	if (err) {
		rte_mempool_free(pool);
		rte_errno = -err;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}
