/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What this process has, for `urxe show`: one JSON document.
 *
 *   gone      whether the device is dead
 *   pid, program
 *   qps       [{qpn, type, state, path_mtu, sgid_index, dgid, dest_qpn, rq_psn, sq_psn, sends,
 *              packets, receives, retries, rnr_retries, timeout, rate_limit, direct, memory,
 *              counters}]
 *     type, state    as in "RC" and "RTS"
 *     path_mtu       bytes
 *     dgid, dest_qpn null for UD and before there is a path
 *     rq_psn, sq_psn of the next packet to come, and to be sent first
 *     sends, ...     struct urxe_qp_load; timeout is the code of IBA, rate_limit kb/s
 *     counters       {name: n}, names of rxe/counters.h; only what is not 0
 *     direct         whether its frames go straight into the peer's inbox
 *     memory         whether WRITEs and READs of its own have gone from memory to memory, and
 *                    the next one is tried so
 *   mrs       [{key, pd, iova, length, access}]
 *     iova           text, as "0x7f0000001000"
 *     access         bits of enum urxe_access
 *   counters  {name: n} of the engine, and names of vnic/inbox.h; only what is not 0
 */
#ifndef URXE_VERBS_REPORT_STATE_JSON_H
#define URXE_VERBS_REPORT_STATE_JSON_H

/*
 * Sends it to whoever holds the other end of `socket` (struct vnic_attach_state), and closes
 * `socket`. With the port's lock, which it gives up for the time of writing. Never blocks.
 */
void inventory_send(int socket);

#endif
