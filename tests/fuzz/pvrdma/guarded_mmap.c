/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For fuzz targets that map a guest's memory: pages that nobody may access surround each shared
 * mapping. They stay when the mapping goes.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "require.h"

#define PAGE 4096u

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	uint8_t *space;

	if (flags != MAP_SHARED)
		return __real_mmap(addr, size, prot, flags, fd, offset);
	space = __real_mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(space != MAP_FAILED);
	return __real_mmap(space + PAGE, size, prot, MAP_SHARED | MAP_FIXED, fd, offset);
}
