/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "real.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct {
	int fd;
	uint8_t *view; /* NULL: there is none */
	dev_t dev;
	ino_t inode;
} ours;

/* RLIMIT_FSIZE holds for memory too: what is longer is refused with SIGXFSZ. */
static bool may_be_so_long(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= ARENA_SIZE;
}

/* Not in core dumps, nor in children: it is sparse, and to be seen elsewhere. */
static uint8_t *map(int fd)
{
	void *view = REAL(mmap)(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (view == MAP_FAILED)
		return NULL;
	if (REAL(madvise)(view, ARENA_SIZE, MADV_DONTFORK) ||
	    REAL(madvise)(view, ARENA_SIZE, MADV_DONTDUMP)) {
		REAL(munmap)(view, ARENA_SIZE);
		return NULL;
	}
	return view;
}

static bool make(int fd, uint64_t token)
{
	struct stat file;

	if (ftruncate(fd, (off_t)ARENA_SIZE) || fcntl(fd, F_ADD_SEALS, SEALS) ||
	    pwrite(fd, &token, sizeof(token), 0) != sizeof(token) || REAL(fstat)(fd, &file))
		return false;
	ours.view = map(fd);
	ours.dev = file.st_dev;
	ours.inode = file.st_ino;
	return ours.view;
}

bool arena_open(uint64_t token)
{
	int fd;

	if (ours.view)
		return true;
	if (!may_be_so_long())
		return false;
	fd = memfd_create("urxe-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* 0 is what a program closes to have it anew. */
	if (fd <= 0 || !make(fd, token)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	ours.fd = fd;
	return true;
}

int arena_descriptor(void)
{
	return ours.view ? ours.fd : -1;
}

uint8_t *arena_at(uint64_t offset)
{
	return ours.view + offset;
}

bool arena_kept(void)
{
	struct stat file;

	return ours.view && !REAL(fstat)(ours.fd, &file) && file.st_dev == ours.dev &&
	       file.st_ino == ours.inode;
}

bool arena_is(unsigned int major, unsigned int minor, uint64_t inode)
{
	return ours.view && makedev(major, minor) == ours.dev && inode == ours.inode;
}

void arena_close(void)
{
	if (!ours.view)
		return;
	REAL(munmap)(ours.view, ARENA_SIZE);
	if (arena_kept())
		close(ours.fd);
	ours.view = NULL;
}

void arena_in_child(void)
{
	if (arena_kept())
		close(ours.fd);
	ours.view = NULL;
}

/* --- Others'. */

/* By a descriptor of that process, of which nothing is opened: it may be of anything. */
static int take_descriptor(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), taken;

	if (process < 0)
		return -1;
	taken = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	return taken;
}

/* Whether nobody can take the memory away from under us, and whose it is. */
static bool is_arena(int fd, uint64_t token)
{
	struct stat file;
	uint64_t told;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && !REAL(fstat)(fd, &file) &&
	       (uint64_t)file.st_size == ARENA_SIZE &&
	       pread(fd, &told, sizeof(told), 0) == sizeof(told) && told == token;
}

uint8_t *arena_reach(pid_t pid, int fd, uint64_t token)
{
	int taken = take_descriptor(pid, fd);
	uint8_t *view;

	if (taken < 0)
		return NULL;
	view = is_arena(taken, token) ? map(taken) : NULL;
	close(taken);
	return view;
}

void arena_leave(uint8_t *reached)
{
	if (reached)
		REAL(munmap)(reached, ARENA_SIZE);
}
