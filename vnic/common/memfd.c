/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "message.h"
#include "place_fd.h"

/* Whether RLIMIT_FSIZE permits a memfd of that size: a larger one would raise SIGXFSZ. */
static bool size_allowed(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
}

static int create_memfd(const char *name, uint64_t size)
{
	int fd, err;

	if (!size_allowed(size))
		return -EFBIG;
	fd = vnic_place_fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

#define STAT_BLOCK 512 /* bytes of a block in st_blocks */
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) ? -errno : 0;
}

static int create_sealed(const char *name, uint64_t size, int seals)
{
	int fd = create_memfd(name, size), ret;

	if (fd < 0)
		return fd;
	ret = add_seals(fd, seals);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int vnic_memory_create(const char *name, uint64_t size)
{
	return create_sealed(name, size, SIZE_SEALS | F_SEAL_SEAL);
}

int vnic_memory_create_unpublished(const char *name, uint64_t size)
{
	return create_sealed(name, size, SIZE_SEALS);
}

static int map_memfd(int fd, uint64_t size, int prot, void **memory)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*memory = p;
	return 0;
}

/*
 * From now on no process can map the memfd for writing. A writable mapping that its owner has made
 * before stays writable. 0 or a negative errno value: before Linux 5.1 the kernel lacks the seal.
 */
int vnic_memory_publish(int fd)
{
	return add_seals(fd, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
}

bool vnic_memory_is_published(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_FUTURE_WRITE;
}

/*
 * Checks that fd is memory that this process may map. 0; -EPERM: fd is not a memfd of sealed size,
 * has too many pages, is published although `writable` is set, or is not published although
 * `writable` is not set. The seals are queried first: only files in memory have them, and the query
 * calls no file system, which a hostile owner could make hang. A memfd of huge pages has seals too,
 * but may run out of pages under a mapping (SIGBUS), so only tmpfs is accepted. When this process
 * closes the last descriptor the kernel frees the pages, which takes time. So the owner must not be
 * able to add pages later, and must not have added more behind the end of the file
 * (FALLOC_FL_KEEP_SIZE).
 */
static int check_memfd(int fd, bool writable)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS || seals & F_SEAL_WRITE ||
	    writable != !(seals & F_SEAL_FUTURE_WRITE))
		return -EPERM;
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC || fstat(fd, &st))
		return -EPERM;
	return (uint64_t)st.st_blocks * STAT_BLOCK > VNIC_MEMORY_MAX ? -EPERM : 0;
}

static int check_size(int fd, uint64_t size)
{
	struct stat st;

	return fstat(fd, &st) || !size || size > VNIC_MEMORY_MAX || (uint64_t)st.st_size != size
		       ? -EINVAL
		       : 0;
}

int vnic_memory_check(int fd)
{
	int ret = check_memfd(fd, true);
	struct stat st;

	if (!ret && (fstat(fd, &st) || (uint64_t)st.st_size > VNIC_MEMORY_MAX))
		ret = -EINVAL;
	return ret;
}

int vnic_memory_map(int fd, uint64_t size, void **memory)
{
	int ret = check_memfd(fd, true);

	if (!ret)
		ret = check_size(fd, size);
	return ret ? ret : map_memfd(fd, size, PROT_READ | PROT_WRITE, memory);
}

int vnic_memory_map_published(int fd, uint64_t size, const void **memory)
{
	int ret = check_memfd(fd, false);
	void *p = NULL;

	if (!ret)
		ret = check_size(fd, size);
	if (!ret)
		ret = map_memfd(fd, size, PROT_READ, &p);
	if (!ret)
		*memory = p;
	return ret;
}

void vnic_memory_isolate(const void *memory, uint64_t size)
{
	(void)mmap((void *)memory, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}
