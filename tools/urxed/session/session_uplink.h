/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gives sessions their packet sockets on the direct uplink, and keeps the packets that these
 * receive from the switch (uplink/direct_uplink.h). session.c, session_lease.c and the daemon call
 * this.
 */
#ifndef URXE_URXED_SESSION_SESSION_UPLINK_H
#define URXE_URXED_SESSION_SESSION_UPLINK_H

#include "urxed/session/session.h"

/*
 * Answers a process's request for packet sockets; ctx is the struct sessions. Returns as
 * vnic_server_ops.uplink: the number of sockets, or a negative status. A status other than 0
 * in *answer is the process's message that it has no sockets any more, or cannot use them. The
 * daemon keeps no copy of the sockets, because a process can hold the kernel's lock of its socket
 * for ever, and setsockopt(2) would wait for that lock.
 */
int session_give_uplink(void *ctx, struct vnic_server_client *conn,
			struct vnic_attach_uplink *answer, int fds[VNIC_UPLINK_SOCKETS]);
/*
 * Call it after a change of leases, sockets, the uplink or sessions.indirect. Keeps the packets
 * that processes receive by their own packet sockets from the switch. While sessions.indirect is
 * set, the switch receives them, too: from an af_packet: uplink it drops them, because each process
 * also receives them by its socket. From an af_xdp: uplink it delivers them, because the sockets
 * then receive none.
 */
void sessions_update_uplink(struct sessions *sessions);
/* Whether any process has a packet socket, by which frames pass the uplink without the switch. */
bool sessions_have_sockets(const struct sessions *sessions);
/*
 * Call it after a change of the HCA, or of the result of qpn_table_needs_uplink() for a block;
 * sessions_update_uplink also calls it. While an HCA backs the device, it makes the uplink on the
 * HCA's interface receive only packets to queue pairs of the engine. If the filter has no room for
 * their blocks, the switch also receives all packets to the HCA's queue pairs.
 */
void sessions_update_admission(struct sessions *sessions);
/* Call it after the session has leased the block that begins with qpn. If the process has packet
 * sockets, records that they receive packets to the block, too. Calls sessions_update_uplink. */
void session_add_uplink_block(struct sessions *sessions, const struct session *s, uint32_t qpn);

#endif
