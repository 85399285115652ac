/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/huge_pages.h"

#include <linux/mman.h>
#include <sys/mman.h>

static size_t whole_pages(size_t size)
{
	return (size + HUGE_PAGE_SIZE - 1) & ~(HUGE_PAGE_SIZE - 1);
}

/*
 * mmap reserves the pages, but the kernel checks a container's limit or a cpuset only at the first
 * access, and then raises SIGBUS. MADV_POPULATE_WRITE (Linux 5.14) accesses all pages, and returns
 * an error instead. The mapping is shared, since copy-on-write after a fork may find no free huge
 * page. This needs no mounted hugetlbfs and no privilege.
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
