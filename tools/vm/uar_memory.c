/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/uar_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pvrdma/pvrdma.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map_file(struct uar_memory *memory)
{
	void *bytes;

	if (ftruncate(memory->fd, PVRDMA_UAR_SIZE) || fcntl(memory->fd, F_ADD_SEALS, SEALS))
		return -errno;
	bytes = mmap(NULL, PVRDMA_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	memory->bytes = bytes;
	return 0;
}

int uar_memory_open(struct uar_memory *memory)
{
	int rc;

	*memory = (struct uar_memory){
		.fd = memfd_create("urxe-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	if (memory->fd < 0)
		return -errno;
	rc = map_file(memory);
	if (rc)
		close(memory->fd);
	return rc;
}

void uar_memory_close(struct uar_memory *memory)
{
	if (!memory->bytes)
		return;
	munmap(memory->bytes, PVRDMA_UAR_SIZE);
	close(memory->fd);
	memory->bytes = NULL;
}
