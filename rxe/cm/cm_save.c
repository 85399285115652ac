/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Saves and restores connections, for the next daemon of this host or for another host. */
#include <errno.h>
#include <string.h>

#include "conn.h"

void cm_save(const struct cm_conn *conn, struct cm_saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	saved->state = (uint8_t)conn->state;
	saved->local_id = conn->local_id;
	saved->remote_id = conn->remote_id;
	saved->remote_guid = conn->remote_guid;
	saved->local_qpn = conn->local_qpn;
	saved->tid = conn->tid;
	saved->channel = conn->channel;
	saved->timeout_ns = conn->timeout_ns;
	saved->max_retries = conn->max_retries;
	saved->by_peer = conn->by_peer;
	saved->sent_attr = conn->sent_attr;
	memcpy(saved->sent, conn->sent, sizeof(saved->sent));
}

int cm_restore(struct cm *cm, uint64_t now, const struct cm_saved *saved, bool frozen,
	       void *conn_ctx, struct cm_conn **out)
{
	struct cm_conn *conn;

	if (saved->state > CM_SIDR_REQ_RCVD || !saved->local_id)
		return -EINVAL;
	if (cm_has_id(cm, saved->local_id))
		return -EEXIST;
	conn = cm_conn_new_as(cm, &saved->channel.path, saved->local_id);
	if (!conn)
		return -ENOMEM;
	conn->ctx = conn_ctx;
	conn->owned = true;
	conn->state = (enum cm_state)saved->state;
	conn->remote_id = saved->remote_id;
	conn->remote_guid = saved->remote_guid;
	conn->local_qpn = saved->local_qpn;
	conn->tid = saved->tid;
	conn->channel = saved->channel;
	conn->timeout_ns = saved->timeout_ns;
	conn->max_retries = saved->max_retries;
	conn->sent_attr = saved->sent_attr;
	memcpy(conn->sent, saved->sent, sizeof(conn->sent));
	conn->channel.path.has_mac = false;
	if (saved->by_peer)
		cm_know_peer(conn);
	/* cm_go_on() may make the manager give up an older unconfirmed connection. For a frozen
	 * connection the manager must give up none. */
	if (frozen)
		cm_freeze(conn);
	else
		cm_go_on(conn, now);
	*out = conn;
	return 0;
}
