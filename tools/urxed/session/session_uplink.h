/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gives sessions their packet sockets on the direct uplink, and keeps the switch from receiving the
 * same packets (uplink/direct_uplink.h). For session.c, session_lease.c and the daemon.
 */
#ifndef URXE_URXED_SESSION_SESSION_UPLINK_H
#define URXE_URXED_SESSION_SESSION_UPLINK_H

#include "urxed/session/session.h"

/*
 * Answers a process's request for packet sockets; ctx is the struct sessions. Result as of
 * vnic_server_ops.uplink: the number of sockets, or a negative status. With a negative status in
 * *answer the process has no sockets any more. The daemon keeps no copy of the sockets: a process
 * can hold the kernel's lock of its socket for ever, and setsockopt(2) would wait for it.
 */
int session_give_uplink(void *ctx, struct vnic_server_client *conn,
			struct vnic_attach_uplink *answer, int fds[VNIC_UPLINK_SOCKETS]);
/*
 * Call it after a change of leases, sockets, the uplink or sessions.indirect. Excludes from the
 * switch the packets that processes receive by their own packet sockets. While sessions.indirect is
 * set, excludes none. On an af_packet: uplink the switch then drops these packets, because each
 * process receives them by its socket, too. On an af_xdp: uplink the switch delivers them, because
 * the sockets receive none.
 */
void sessions_update_uplink(struct sessions *sessions);
/* Whether any process has a packet socket, by which frames pass the uplink unseen by the switch. */
bool sessions_have_sockets(const struct sessions *sessions);
/*
 * Call it after the HCA has changed, or the result of qpn_table_needs_uplink() for a block;
 * sessions_update_uplink calls it as well. While an HCA backs the device, the uplink on the HCA's
 * interface receives only packets to queue pairs of the engine. Without that filter the switch
 * also receives all packets to the HCA's queue pairs, as it does if the filter has no room.
 */
void sessions_update_admission(struct sessions *sessions);
/*
 * Call it after the session has leased the block that begins with qpn. If the process has packet
 * sockets, notes that they receive packets to the block, too. Calls sessions_update_uplink.
 */
void session_add_uplink_block(struct sessions *sessions, const struct session *s, uint32_t qpn);

#endif
