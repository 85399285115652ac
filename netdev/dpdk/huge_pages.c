/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/huge_pages.h"

#include <linux/mman.h>
#include <sys/mman.h>

static size_t whole_pages(size_t size)
{
	return (size + HUGE_PAGE_SIZE - 1) & ~(HUGE_PAGE_SIZE - 1);
}

/*
 * The mapping reserves its pages, but a container's limit or a cpuset is looked at only
 * when they are touched, and the answer is SIGBUS: so all of them are, at once, by a call
 * that can fail (Linux 5.14). Shared, since a page that a forked child must have a copy of
 * may not be there. No mounted hugetlbfs is needed, nor any privilege.
 */
void *huge_pages_map(size_t size)
{
	const int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB;
	const size_t length = whole_pages(size);
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (!madvise(memory, length, MADV_POPULATE_WRITE))
		return memory;
	munmap(memory, length);
	return NULL;
}

void huge_pages_unmap(void *memory, size_t size)
{
	munmap(memory, whole_pages(size));
}
