/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "eventfd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int vnic_eventfd_check(int fd)
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

/* Whether the eventfd's counter is so high that a write would wait. poll(2) returns EINTR only if
 * the eventfd was not writable. */
static bool is_full(int fd)
{
	struct pollfd pfd = {fd, POLLOUT, 0};
	const int ready = poll(&pfd, 1, 0);

	return !ready || (ready < 0 && errno == EINTR);
}

/* True also for a full eventfd, which is readable already, and needs no write. poll(2) and write(2)
 * are cancellation points: a thread cancelled there would end with locks of its process held. */
bool vnic_eventfd_raise(int fd)
{
	const int saved = errno;
	bool raised;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	raised = is_full(fd) || !eventfd_write(fd, 1);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return raised;
}
