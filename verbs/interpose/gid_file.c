/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interpose/gid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <vnic/attach.h>

#include "interpose/path_redirect.h"

/* Behind ".../gid_attrs/" the path has types/N or ndevs/N; NULL: it is no such path. */
static const char *find_attribute(const char *path)
{
	static const char directory[] = "/gid_attrs/";
	const char *found = path_watched(path) ? strstr(path, directory) : NULL;

	return found ? found + sizeof(directory) - 1 : NULL;
}

static bool names_entry(const char *attribute)
{
	const char *index = strchr(attribute, '/');
	char *end;
	unsigned long n;

	if (!index || index[1] < '0' || index[1] > '9')
		return false;
	n = strtoul(index + 1, &end, 10);
	return !*end && n < VNIC_ATTACH_GIDS;
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

/* read(2) of an epoll set fails with EINVAL. */
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
	if (!attribute || !names_entry(attribute)) {
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
