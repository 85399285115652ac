/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/uar_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pvrdma/pvrdma.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map_file(struct uar_memory *memory)
{
	void *bytes =
		mmap(NULL, PVRDMA_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
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
	if (ftruncate(memory->fd, PVRDMA_UAR_SIZE) || fcntl(memory->fd, F_ADD_SEALS, SEALS))
		rc = -errno;
	else
		rc = map_file(memory);
	if (rc)
		close(memory->fd);
	return rc;
}

int uar_memory_adopt(struct uar_memory *memory, int *fd)
{
	struct stat file;
	int rc;

	*memory = (struct uar_memory){.fd = *fd};
	if (fcntl(*fd, F_GET_SEALS) != SEALS || fstat(*fd, &file) ||
	    file.st_size != (off_t)PVRDMA_UAR_SIZE)
		return -EBADMSG;
	rc = map_file(memory);
	if (!rc)
		*fd = -1;
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
