/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/inbox.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layout.h"
#include "message.h"
#include "shared.h"

struct vnic_inbox_broker {
	struct inbox_memory *memory;
	uint64_t size;
	int fds[VNIC_INBOX_FDS];
};

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

int vnic_inbox_broker_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu,
			   struct vnic_inbox_broker **broker)
{
	struct vnic_inbox_broker *k = calloc(1, sizeof(*k));
	void *memory = NULL;
	int ret = k ? check_eventfd(fds[VNIC_INBOX_WAKE]) : -ENOMEM;

	if (!ret)
		ret = check_published(fds[VNIC_INBOX_PUBLISHED]);
	if (!ret)
		ret = vnic_memory_map(fds[VNIC_INBOX_MEMORY], inbox_size(mtu), &memory);
	if (ret) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		free(k);
		return ret;
	}
	k->memory = memory;
	k->size = inbox_size(mtu);
	memcpy(k->fds, fds, sizeof(k->fds));
	*broker = k;
	return 0;
}

void vnic_inbox_broker_revoke(struct vnic_inbox_broker *broker)
{
	vnic_store(&broker->memory->lock, INBOX_CLOSED);
}

void vnic_inbox_broker_close(struct vnic_inbox_broker *broker)
{
	if (!broker)
		return;
	munmap(broker->memory, broker->size);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(broker->fds[i]);
	free(broker);
}

void vnic_inbox_broker_fds(const struct vnic_inbox_broker *broker, int fds[VNIC_INBOX_FDS])
{
	memcpy(fds, broker->fds, sizeof(broker->fds));
}

uint32_t vnic_inbox_broker_holder(const struct vnic_inbox_broker *broker)
{
	uint32_t lock = vnic_load(&broker->memory->lock);

	return lock == INBOX_CLOSED ? 0 : lock;
}

void vnic_inbox_broker_unlock(struct vnic_inbox_broker *broker, uint32_t holder)
{
	__atomic_compare_exchange_n(&broker->memory->lock, &holder, INBOX_FREE, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
