/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The descriptors of a new inbox, for the daemon and for programs without a daemon. */
#ifndef URXE_VNIC_INBOX_CREATE_H
#define URXE_VNIC_INBOX_CREATE_H

#include <vnic/inbox.h>

/*
 * Creates the descriptors of an empty inbox: memory that senders write (VNIC_INBOX_MEMORY), memory
 * that only the receiver writes (VNIC_INBOX_PUBLISHED), and an eventfd (VNIC_INBOX_WAKE). The
 * receiver maps the second memory before it calls vnic_memory_publish, after which no process can
 * map it for writing. 0 or a negative errno value. The caller owns the descriptors, -1 = none, also
 * on failure.
 */
int inbox_create_fds(uint16_t mtu, int fds[VNIC_INBOX_FDS]);

#endif
