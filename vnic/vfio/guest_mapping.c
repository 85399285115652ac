/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "guest_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* All mappings. The handler of SIGBUS reads the list in the one thread that uses guest memory. */
static struct guest_mapping *mappings;
static struct sigaction action_before;
static void (*call_losing)(void *ctx); /* before a page is replaced; NULL: nothing */
static void *losing_ctx;

/* --- Files */

/* Whether the file system is one of local disks. On others an access to a file may wait for a
 * process or for another host. */
static bool is_on_disk(const struct statfs *fs)
{
	return fs->f_type == EXT4_SUPER_MAGIC || fs->f_type == XFS_SUPER_MAGIC ||
	       fs->f_type == BTRFS_SUPER_MAGIC;
}

/* Whether the file is in memory: only such files have seals, and the kernel answers this call
 * without the file system. */
static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static int check_file(const struct guest_file *file, uint64_t *page)
{
	struct stat status;
	struct statfs fs;

	if (fstatfs(file->fd, &fs))
		return -errno;
	if (!is_memory(file->fd) && !is_on_disk(&fs))
		return -EOPNOTSUPP;
	if (fstat(file->fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EOPNOTSUPP;
	if (file->size > (uint64_t)status.st_size ||
	    file->offset > (uint64_t)status.st_size - file->size)
		return -EFBIG;
	*page = (uint64_t)(fs.f_type == HUGETLBFS_MAGIC ? fs.f_bsize : sysconf(_SC_PAGESIZE));
	return 0;
}

/* --- Mappings */

static int map_file(struct guest_mapping *m, int fd)
{
	int rc;

	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd < 0)
		return -errno;
	m->start = mmap(NULL, m->length, m->protection, MAP_SHARED, m->fd, (off_t)m->offset);
	if (m->start != MAP_FAILED)
		return 0;
	rc = -errno;
	close(m->fd);
	return rc;
}

int guest_mapping_open(const struct guest_file *file, bool *lost_flag, struct guest_mapping **out,
		       void **bytes)
{
	struct guest_mapping *m;
	uint64_t page = 0, before;
	int rc = check_file(file, &page);

	if (rc)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	before = file->offset % page;
	m->page = page;
	m->length = (before + file->size + page - 1) / page * page;
	m->protection = PROT_READ | (file->writable ? PROT_WRITE : 0);
	m->lost_flag = lost_flag;
	m->offset = file->offset - before;
	rc = map_file(m, file->fd);
	if (rc) {
		free(m);
		return rc;
	}
	madvise(m->start, m->length, MADV_DONTDUMP);
	m->next = mappings;
	mappings = m;
	*bytes = m->start + before;
	*out = m;
	return 0;
}

static void guest_mapping_close(struct guest_mapping *mapping)
{
	struct guest_mapping **link = &mappings;

	while (*link != mapping)
		link = &(*link)->next;
	*link = mapping->next;
	munmap(mapping->start, mapping->length);
	close(mapping->fd);
	free(mapping);
}

void guest_mapping_close_unused(const bool *lost_flag, bool all)
{
	struct guest_mapping *next;

	for (struct guest_mapping *m = mappings; m; m = next) {
		next = m->next;
		if (m->lost_flag == lost_flag && (all || !m->regions))
			guest_mapping_close(m);
	}
}

struct guest_mapping *guest_mapping_find(const void *byte)
{
	struct guest_mapping *m = mappings;

	while (m && (uintptr_t)byte - (uintptr_t)m->start >= m->length)
		m = m->next;
	return m;
}

void guest_mapping_discard(const struct guest_mapping *mapping, void *bytes, uint64_t size)
{
	const uint64_t at = (uint64_t)((uint8_t *)bytes - mapping->start);
	const uint64_t from = (at + mapping->page - 1) / mapping->page * mapping->page;
	const uint64_t to = (at + size) / mapping->page * mapping->page;

	if (from < to)
		(void)mmap(mapping->start + from, to - from, PROT_NONE,
			   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

bool guest_mapping_find_lost(const struct guest_mapping *mapping, void **bytes, uint64_t *size)
{
	const uint64_t at = (uint64_t)((uint8_t *)*bytes - mapping->start);

	if (mapping->lost)
		return true;
	for (uint32_t i = 0; i < mapping->n_lost; i++) {
		const uint64_t page = mapping->lost_at[i], end = page + mapping->page;
		const uint64_t from = page > at ? page : at;
		const uint64_t to = end < at + *size ? end : at + *size;

		if (from >= to)
			continue;
		*bytes = mapping->start + from;
		*size = to - from;
		return true;
	}
	return false;
}

bool guest_mapping_is_intact(const void *bytes, uint64_t size)
{
	uint8_t *from = (uint8_t *)(uintptr_t)bytes;

	while (size) {
		const struct guest_mapping *m = guest_mapping_find(from);
		void *lost = from;
		uint64_t part = m ? (uint64_t)(m->start + m->length - from) : size;

		if (part > size)
			part = size;
		size -= part;
		from += part;
		if (m && guest_mapping_find_lost(m, &lost, &part))
			return false;
	}
	return true;
}

/* --- Faults. These functions run in the handler: they make system calls and nothing else. */

static bool map_zeros(const struct guest_mapping *m, uint64_t at, uint64_t size)
{
	return mmap(m->start + at, size, m->protection,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/*
 * Maps zeros over the page, or, after GUEST_MAPPING_LOST pages, over the whole mapping. A truncated
 * file loses all its pages, and a process cannot have a mapping for each. False: the kernel
 * refused.
 */
static bool lose_page(struct guest_mapping *m, uint64_t at)
{
	if (call_losing)
		call_losing(losing_ctx);
	if (m->n_lost < GUEST_MAPPING_LOST && map_zeros(m, at, m->page))
		m->lost_at[m->n_lost++] = at;
	else if (map_zeros(m, 0, m->length))
		m->lost = true;
	else
		return false;
	*m->lost_flag = true;
	return true;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	const int error = errno;
	/* A positive si_code is a fault. A signal that a process has sent has no address. */
	struct guest_mapping *m = info->si_code > 0 ? guest_mapping_find(info->si_addr) : NULL;

	(void)context;
	if (!m ||
	    !lose_page(m, (uint64_t)((uint8_t *)info->si_addr - m->start) / m->page * m->page)) {
		/*
		 * For the earlier handler: a faulting access is repeated when this function
		 * returns, but a signal that a process has sent is not.
		 */
		sigaction(SIGBUS, &action_before, NULL);
		if (info->si_code <= 0)
			raise(number);
	}
	errno = error;
}

int guest_mapping_catch_faults(void (*losing)(void *ctx), void *ctx)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, before;

	call_losing = losing;
	losing_ctx = ctx;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, &before))
		return -errno;
	if (before.sa_sigaction != on_sigbus)
		action_before = before;
	return 0;
}
