/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks descriptors that another process presents as its inbox. */
#include <vnic/inbox.h>

#include <sys/mman.h>

#include "eventfd.h"
#include "message.h"

/*
 * Checks that the descriptor is memory of VNIC_INBOX_PUBLISHED_SIZE bytes that its owner has sealed
 * with vnic_memory_publish, so that no other process can map it for writing. Senders map no other
 * kind. Returns as vnic_memory_map_published.
 */
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
	int ret = vnic_eventfd_check(fds[VNIC_INBOX_WAKE]);

	if (!ret)
		ret = check_published(fds[VNIC_INBOX_PUBLISHED]);
	return ret ? ret : vnic_memory_check(fds[VNIC_INBOX_MEMORY]);
}
