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
	return !*end && n < VNIC_ATTACH_GIDS;
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

/* Returns a descriptor of which read(2) fails with EINVAL: that of an epoll set. */
static int open_unreadable(int flags)
{
	return epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
}

int gid_file_opened(const char *path, int fd, int flags)
{
	const char *attribute;
	int saved = errno;

	if (fd < 0 && errno != ENOENT)
		return fd;
	attribute = find_attribute(path);
	if (!attribute || !names_entry(attribute) || !has_port(path, attribute)) {
		errno = saved;
		return fd;
	}
	if (fd < 0)
		return open_unreadable(flags);
	if (strncmp(attribute, "ndevs/", 6) || !names_foreign_interface(fd)) {
		errno = saved;
		return fd;
	}
	close(fd);
	return open_unreadable(flags);
}
