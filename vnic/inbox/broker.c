/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/inbox.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "create.h"
#include "layout.h"
#include "lock.h"
#include "message.h"
#include "shared.h"

struct vnic_inbox_broker {
	struct inbox_memory *memory;
	uint64_t size;
	int fds[VNIC_INBOX_FDS];
};

/* Makes a broker, which owns fds from now on. `rc`: 0, or the error of the caller's step that made
 * or checked fds: then this function only closes fds and returns rc. */
static int make_broker(const int fds[VNIC_INBOX_FDS], uint16_t mtu, int rc,
		       struct vnic_inbox_broker **broker)
{
	struct vnic_inbox_broker *k = calloc(1, sizeof(*k));
	void *memory = NULL;

	if (!rc)
		rc = k ? vnic_memory_map(fds[VNIC_INBOX_MEMORY], inbox_size(mtu), &memory)
		       : -ENOMEM;
	if (rc) {
		vnic_close_fds(fds, VNIC_INBOX_FDS);
		free(k);
		return rc;
	}
	/* A process that the daemon forks must not inherit the mapping. */
	(void)madvise(memory, inbox_size(mtu), MADV_DONTFORK);
	k->memory = memory;
	k->size = inbox_size(mtu);
	memcpy(k->fds, fds, sizeof(k->fds));
	*broker = k;
	return 0;
}

int vnic_inbox_broker_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu,
			   struct vnic_inbox_broker **broker)
{
	return make_broker(fds, mtu, vnic_inbox_check(fds), broker);
}

int vnic_inbox_broker_create(uint16_t mtu, struct vnic_inbox_broker **broker)
{
	int fds[VNIC_INBOX_FDS];

	return make_broker(fds, mtu, inbox_create_fds(mtu, fds), broker);
}

bool vnic_inbox_broker_published(const struct vnic_inbox_broker *broker)
{
	return vnic_memory_is_published(broker->fds[VNIC_INBOX_PUBLISHED]);
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
	vnic_close_fds(broker->fds, VNIC_INBOX_FDS);
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
	inbox_unlock(broker->memory, holder);
}
