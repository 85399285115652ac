/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks descriptors that another process presents as its inbox. */
#include <vnic/inbox.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "message.h"

/*
 * Senders write to the eventfd: a write to a pipe without a reader would raise SIGPIPE, and a write
 * to a file could do anything.
 */
static int check_eventfd(int fd)
{
	char target[32], path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = 0;
	return strcmp(target, "anon_inode:[eventfd]") ? -EINVAL : 0;
}

/* The broker passes on no other kind of memory, either. */
static int check_published(int fd)
{
	const void *memory;
	int ret = vnic_memory_map_published(fd, VNIC_INBOX_PUBLISHED_SIZE, &memory);

	if (!ret)
		munmap((void *)memory, VNIC_INBOX_PUBLISHED_SIZE);
	return ret;
}

int vnic_inbox_check(const int fds[VNIC_INBOX_FDS])
{
	int ret = check_eventfd(fds[VNIC_INBOX_WAKE]);

	if (!ret)
		ret = check_published(fds[VNIC_INBOX_PUBLISHED]);
	return ret ? ret : vnic_memory_check(fds[VNIC_INBOX_MEMORY]);
}
