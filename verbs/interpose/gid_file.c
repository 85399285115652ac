/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/gid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "interpose/path_redirect.h"
#include "process/libc_real.h"

#define DIRECTORY "/gid_attrs/"

/* Returns the part of the path behind ".../gid_attrs/"; NULL: path_watched() is false for the path,
 * or the path has no such part. */
static const char *find_attribute(const char *path)
{
	const char *found = path_watched(path) ? strstr(path, DIRECTORY) : NULL;

	return found ? found + strlen(DIRECTORY) : NULL;
}

static bool names_entry(const char *attribute)
{
	const char *index = attribute + strlen("types/");
	char *end;
	unsigned long n;

	if ((strncmp(attribute, "types/", 6) && strncmp(attribute, "ndevs/", 6)) || *index < '0' ||
	    *index > '9')
		return false;
	n = strtoul(index, &end, 10);
	return !*end && n < VNIC_ATTACH_GIDS && (*index != '0' || end == index + 1);
}

/* Whether the run directory has the device and the port that the path names. `attribute`: its part
 * behind ".../gid_attrs/". Not inlined, because threads with small stacks open the device. */
static __attribute__((noinline)) bool has_port(const char *path, const char *attribute)
{
	char buf[PATH_MAX];

	if (path_redirect(path, buf) != buf)
		return false;
	buf[strlen(buf) - strlen(DIRECTORY) - strlen(attribute)] = '\0';
	return !REAL(access)(buf, F_OK);
}

static bool names_foreign_interface(int fd)
{
	char name[IF_NAMESIZE];
	ssize_t n = pread(fd, name, sizeof(name) - 1, 0);

	if (n <= 0)
		return false;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return !if_nametoindex(name) && errno == ENODEV;
}

/* Whether reads of the file fail: the run directory lacks it (fd is -1), or it names an interface
 * that the caller's network namespace lacks. */
static bool is_unreadable(const char *path, int fd)
{
	const char *attribute = find_attribute(path);

	if (!attribute || !names_entry(attribute) || !has_port(path, attribute))
		return false;
	return fd < 0 || (!strncmp(attribute, "ndevs/", 6) && names_foreign_interface(fd));
}

/* Returns a descriptor of which read(2) fails with EINVAL: that of an epoll set. -1 and errno: the
 * program may not open the file for writing, or there is no descriptor. */
static int open_unreadable(int flags)
{
	if ((flags & O_ACCMODE) == O_RDONLY)
		return epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
	errno = EACCES;
	return -1;
}

int gid_file_opened(const char *path, int fd, int flags)
{
	int saved = errno;

	if (fd < 0 && errno != ENOENT)
		return fd;
	if (!is_unreadable(path, fd)) {
		errno = saved;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return open_unreadable(flags);
}

/* The flags of open(2) for a mode of fopen(3) that begins with 'r'. */
static int flags_of(const char *mode)
{
	const size_t length = strcspn(mode, ",");

	return (memchr(mode, '+', length) ? O_RDWR : O_RDONLY) |
	       (memchr(mode, 'e', length) ? O_CLOEXEC : 0);
}

static FILE *fopen_unreadable(const char *mode)
{
	const int fd = open_unreadable(flags_of(mode));
	FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);

	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

FILE *gid_file_fopened(const char *path, FILE *stream, const char *mode)
{
	int saved = errno;

	if (*mode != 'r' || (!stream && errno != ENOENT))
		return stream;
	if (!is_unreadable(path, stream ? fileno(stream) : -1)) {
		errno = saved;
		return stream;
	}
	if (stream)
		fclose(stream);
	return fopen_unreadable(mode);
}
