/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Introductions: the daemon sends this process the descriptors of a peer's inbox. */
#ifndef URXE_VERBS_DAEMON_INTRODUCTION_H
#define URXE_VERBS_DAEMON_INTRODUCTION_H

#include <stdint.h>

#include <vnic/driver.h>

/*
 * Populates the pages of this process's inbox, once, without adapter.lock, because that takes long.
 * Call it when the process has got a peer's inbox: the peer then has this process's, and may send.
 */
void adapter_populate_inbox(void);
/*
 * Adds the inbox of the process with that QPN of the device with that MAC to adapter.tx. Takes the
 * descriptors, also after an error. With adapter.lock. 0 or a negative errno value.
 */
int adapter_take_inbox(const uint8_t mac[6], uint32_t qpn, const int fds[VNIC_INBOX_FDS]);
/*
 * The daemon has sent, unasked, the inbox of the process that has that QPN: adds the inbox to
 * adapter.tx. Takes the descriptors, also after an error. The caller holds adapter.lock, which the
 * function releases meanwhile.
 */
void adapter_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS]);

#endif
