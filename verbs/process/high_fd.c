/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/high_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process/emulated_fd.h"
#include "process/libc_real.h"

/* The library's lowest number: above those of select(2). A higher number would make the kernel's
 * table of descriptors larger than needed. */
#define FLOOR 1024u
/* If RLIMIT_NOFILE is below FLOOR + ROOM, the library's numbers are the highest ROOM ones below the
 * limit, but at most half of all numbers. */
#define ROOM 128u

static unsigned int lowest_number(void)
{
	struct rlimit limit;
	unsigned int room = ROOM;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FLOOR + ROOM)
		return FLOOR;
	if (room > limit.rlim_cur / 2)
		room = (unsigned int)limit.rlim_cur / 2;
	return (unsigned int)limit.rlim_cur - room;
}

/* A function of ThreadSanitizer's runtime; NULL in a program without that runtime. */
extern void __tsan_acquire(void *address) __attribute__((weak));

/*
 * ThreadSanitizer orders a write to one end of a socket pair before the read at the other end, if
 * its runtime has seen how both descriptors came about. The runtime sees dup3(), but not fcntl().
 * Without that order it reports races in programs that get events of this library.
 */
static void show_to_thread_sanitizer(int fd, int duplicate)
{
	/*
	 * fd is no file of the table, but may have the entry of a device that the program has
	 * closed by a raw system call. dup3() would give the duplicate that entry.
	 */
	if (__tsan_acquire && duplicate >= 0 && !fd_find(fd) && !fd_find(duplicate))
		dup3(fd, duplicate, O_CLOEXEC);
}

static int duplicate_from(int fd, unsigned int lowest)
{
	const int duplicate = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, (void *)(uintptr_t)lowest);

	show_to_thread_sanitizer(fd, duplicate);
	return duplicate;
}

int high_fd(int fd)
{
	const unsigned int lowest = fd < 0 ? 0 : lowest_number();
	const int error = errno;
	int high;

	if (fd < 0 || (unsigned int)fd >= lowest)
		return fd;
	high = duplicate_from(fd, lowest);
	if (high >= 0)
		REAL(close)(fd);
	errno = error;
	return high >= 0 ? high : fd;
}

int high_fd_duplicate(int fd)
{
	const int error = errno;
	const int high = duplicate_from(fd, lowest_number());

	if (high >= 0 || errno == EBADF)
		return high;
	errno = error;
	return duplicate_from(fd, 0);
}
