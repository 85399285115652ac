/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory in huge pages: of this process alone, and free again however that ends. */
#ifndef URXE_NETDEV_DPDK_HUGE_PAGES_H
#define URXE_NETDEV_DPDK_HUGE_PAGES_H

#include <stddef.h>

/* Larger ones would stay mostly empty. */
#define HUGE_PAGE_SIZE ((size_t)2 << 20)

/* At least `size` bytes, each of which is there; NULL: not so many pages can be had. */
void *huge_pages_map(size_t size);
/* With the size that was asked for. */
void huge_pages_unmap(void *memory, size_t size);

#endif
