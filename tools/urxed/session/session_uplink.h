/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gives sessions their packet sockets on the direct uplink, and keeps the switch from receiving the
 * same packets (uplink/direct_uplink.h). For session.c, session_lease.c and the daemon.
 */
#ifndef URXE_URXED_SESSION_SESSION_UPLINK_H
#define URXE_URXED_SESSION_SESSION_UPLINK_H

#include "urxed/session/session.h"

/* vnic_server_ops.uplink; ctx is the struct sessions. */
int session_give_uplink(void *ctx, struct vnic_server_client *conn,
			struct vnic_attach_uplink *answer);
/*
 * After leases, sockets or the uplink have changed: the switch receives packets from the uplink to
 * the queue pairs of processes without a socket, and to no others.
 */
void sessions_update_uplink(struct sessions *sessions);
/* After sessions.indirect has changed: while it is set, the sockets receive nothing. */
void sessions_switch_uplink(struct sessions *sessions);
/* The session has leased the block that begins with qpn. */
void session_add_uplink_block(struct sessions *sessions, const struct session *s, uint32_t qpn);
/* Closes the daemon's duplicate of the session's socket. */
void session_close_uplink(struct session *s);

#endif
