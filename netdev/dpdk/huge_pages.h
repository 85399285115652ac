/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Anonymous memory in huge pages; the kernel frees it at the end of the process. */
#ifndef URXE_NETDEV_DPDK_HUGE_PAGES_H
#define URXE_NETDEV_DPDK_HUGE_PAGES_H

#include <stddef.h>

/* 2 MB. Of a page of 1 GB a port would use a small part only. */
#define HUGE_PAGE_SIZE ((size_t)2 << 20)

/* Maps at least `size` bytes, all present; NULL: too few huge pages are free, or the kernel is
 * older than Linux 5.14. */
void *huge_pages_map(size_t size);
/* Unmaps memory that huge_pages_map returned for the same `size`. */
void huge_pages_unmap(void *memory, size_t size);

#endif
