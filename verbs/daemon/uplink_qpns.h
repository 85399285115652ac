/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells the daemon to which QPNs of the HCA the engine receives packets of other hosts
 * (VNIC_QPN_UPLINK), so that the uplink leaves all others to the HCA. For commands on queue pairs,
 * and for take-overs. Functions need adapter.lock, and never wait for the daemon.
 */
#ifndef URXE_VERBS_DAEMON_UPLINK_QPNS_H
#define URXE_VERBS_DAEMON_UPLINK_QPNS_H

#include <stdbool.h>

struct qp;

/* Call it after a command has changed the queue pair. True: the daemon was told to receive its
 * packets, and does so when adapter_await_daemon() returns. False: nothing new; or the daemon reads
 * no messages now, and the engine thread tells it later. */
bool uplink_qpn_update(struct qp *qp);
/*
 * The same for all queue pairs. Call it when a take-over begins, so before the HCA stops any queue
 * pair, and when it has ended; when the device's addresses have changed; before another daemon
 * learns the QPNs; and while adapter.uplink_qpns_late.
 */
void uplink_qpns_update(void);

#endif
