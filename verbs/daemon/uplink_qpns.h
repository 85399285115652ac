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
 * packets, and the daemon did not receive them before the call. The function has asked the daemon,
 * unless the daemon reads no messages now. The caller then repeats this call and
 * adapter_await_daemon(), which needs adapter.lock to be free. If the call returns false, the
 * daemon receives the packets after the next wait.
 */
bool uplink_qpn_update(struct qp *qp);
/*
 * The same for all queue pairs. Call it:
 * - when a take-over begins, before the HCA stops any queue pair, and when it has ended;
 * - when the device's addresses have changed;
 * - before another daemon learns the QPNs;
 * - again and again while adapter.uplink_qpns_late is true.
 */
void uplink_qpns_update(void);
/* Whether the daemon has applied all changes, or none can be asked. */
bool uplink_qpns_handled(void);

#endif
