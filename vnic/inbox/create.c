/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "create.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "layout.h"
#include "message.h"
#include "place_fd.h"

int inbox_create_fds(uint16_t mtu, int fds[VNIC_INBOX_FDS])
{
	memset(fds, -1, VNIC_INBOX_FDS * sizeof(fds[0]));
	fds[VNIC_INBOX_WAKE] = vnic_place_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (fds[VNIC_INBOX_WAKE] < 0)
		return -errno;
	fds[VNIC_INBOX_MEMORY] = vnic_memory_create("urxe-inbox", inbox_size(mtu));
	if (fds[VNIC_INBOX_MEMORY] < 0)
		return fds[VNIC_INBOX_MEMORY];
	fds[VNIC_INBOX_PUBLISHED] =
		vnic_memory_create_unpublished("urxe-published", VNIC_INBOX_PUBLISHED_SIZE);
	return fds[VNIC_INBOX_PUBLISHED] < 0 ? fds[VNIC_INBOX_PUBLISHED] : 0;
}
