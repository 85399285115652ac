/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of this process for `urxe show`: one JSON document.
 *
 *   gone      whether the device is dead
 *   pid, program
 *   qps       [{qpn, type, state, path_mtu, sgid_index, dgid, dest_qpn, rq_psn, sq_psn, sends,
 *              packets, receives, retries, rnr_retries, timeout, rate_limit, direct, memory,
 *              uplink, counters}]
 *     type, state    as in "RC" and "RTS"
 *     path_mtu       bytes
 *     dgid, dest_qpn null for UD, and before the QP has a path
 *     rq_psn, sq_psn PSN of the next packet to receive, and of the next to send first
 *     sends, ...     struct urxe_qp_load; timeout is the code of IBA, rate_limit kb/s
 *     counters       {name: n}, names of rxe/counters.h, without zeros
 *     direct         whether frames go to the peer's inbox without the switch
 *     memory         whether WRITEs and READs were copied between the processes, and the next
 *                    one is tried so
 *     uplink         whether frames go to another host by the process's own packet socket
 *   mrs       [{key, pd, iova, length, access}]
 *     iova           text, as "0x7f0000001000"
 *     access         bits of enum urxe_access
 *   counters  {name: n} of the engine, and names of vnic/inbox.h, without zeros
 */
#ifndef URXE_VERBS_REPORT_STATE_JSON_H
#define URXE_VERBS_REPORT_STATE_JSON_H

/*
 * Sends the document to the other end of `socket` (struct vnic_attach_state), and closes `socket`.
 * With the lock of the port, which is free during the writing. Never blocks. For the engine thread.
 */
void state_json_send(int socket);

#endif
