/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The descriptors of a new inbox, for the daemon and for programs without a daemon. */
#ifndef URXE_VNIC_INBOX_CREATE_H
#define URXE_VNIC_INBOX_CREATE_H

#include <vnic/inbox.h>

/*
 * Creates memory and eventfd of an empty inbox. The receiver maps the memory that it
 * publishes before vnic_memory_publish makes it read-only for others. 0 or a negative errno value;
 * the caller owns the descriptors, -1 = none, also on failure.
 */
int inbox_create_fds(uint16_t mtu, int fds[VNIC_INBOX_FDS]);

#endif
