/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inboxes of peers, which the daemon introduces to this process. */
#ifndef URXE_VERBS_DAEMON_INTRODUCTION_H
#define URXE_VERBS_DAEMON_INTRODUCTION_H

#include <stdint.h>

#include <vnic/driver.h>

/*
 * adapter.lock must not be held: the function populates this process's inbox, because a peer whose
 * inbox this process has may send, too.
 */
void adapter_populate_inbox(void);
/*
 * The daemon has sent the inbox of that QPN's process unasked. The adapter takes the descriptors;
 * the lock is free meanwhile.
 */
void adapter_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS]);

#endif
