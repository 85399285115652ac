/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells the daemon which queue pairs with QPNs of the HCA need packets of other hosts in the engine
 * (VNIC_QPN_UPLINK). The uplink leaves all other packets to the HCA. For commands on queue pairs,
 * and for take-overs. Functions need adapter.lock, and never wait for the daemon.
 */
#ifndef URXE_VERBS_DAEMON_UPLINK_QPNS_H
#define URXE_VERBS_DAEMON_UPLINK_QPNS_H

#include <stdbool.h>

struct qp;

/*
 * Call it after a command has changed the queue pair. True: the engine needs the queue pair's
 * packets, and the daemon had not been asked for them before this call. The function has asked the
 * daemon, unless the socket to the daemon is full. The caller releases adapter.lock, calls
 * adapter_await_daemon(), takes the lock, and calls this function again, until it returns false;
 * then the caller waits once more, and the daemon passes the packets to the engine.
 */
bool uplink_qpn_update(struct qp *qp);
/*
 * Tells the daemon, as uplink_qpn_update(), for all queue pairs. Call it:
 * - when a take-over begins, before the HCA stops any queue pair, and when it has ended;
 * - when the device's addresses have changed;
 * - before another daemon learns the QPNs;
 * - again and again while adapter.uplink_qpns_late is true.
 */
void uplink_qpns_update(void);
/* Whether the daemon has applied all changes of uplink_qpn_update() and uplink_qpns_update(). Also
 * true if this process has no daemon. */
bool uplink_qpns_handled(void);

#endif
