/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/antispoof.h"

#include <rxe/packet.h>

/*
 * Whether the frame is from or to QP0 or QP1. These belong to the host, so only the daemon sends
 * from them. Only the daemon sends to them, too, because QP1's Q_Key is a controlled one (IBA
 * 3.5.3), which unprivileged consumers may not use.
 */
static bool is_management(const struct frame_class *s)
{
	return s->dest_qpn <= URXE_QPN_GSI ||
	       (s->service == FRAME_DATAGRAM && s->src_qpn <= URXE_QPN_GSI);
}

static struct remote_qp_key destination_qp(const struct frame_class *s)
{
	struct remote_qp_key key = {.qpn = s->dest_qpn};

	memcpy(key.gid, s->dip, sizeof(key.gid));
	return key;
}

/* Whether the destination is on this host: the switch delivers a frame to the host's MAC to a
 * process of this host, whatever the frame's destination IP is. */
static bool is_for_same_host(const struct antispoof_rules *rules, const struct frame_class *s)
{
	return ether_same(s->dmac, rules->host->mac);
}

static enum switch_drop check_cnp(const struct antispoof_rules *rules,
				  const struct remote_qp_owner *owner, const struct frame_class *s)
{
	const struct remote_qp_key to = destination_qp(s);
	bool may = is_for_same_host(rules, s)
			   ? remote_qp_acl_cnp_to_same_host(rules->remotes, owner, s->sip, &to)
			   : remote_qp_acl_cnp_to_other_host(rules->remotes, owner, &to);

	return may ? SWITCH_NO_DROP : SWITCH_DROP_UNREGISTERED;
}

/* Returns the reason to drop a frame of RC or UC, or SWITCH_NO_DROP. Packets of these services do
 * not name their source QP, so the table of remote QPs (remote_qp_acl.h) decides. */
static enum switch_drop check_connection(const struct antispoof_rules *rules,
					 const struct remote_qp_owner *owner,
					 const struct frame_class *s)
{
	static const enum switch_drop drops[] = {
		[REMOTE_QP_GRANTED] = SWITCH_NO_DROP,
		[REMOTE_QP_UNREGISTERED] = SWITCH_DROP_UNREGISTERED,
		[REMOTE_QP_NOT_MUTUAL] = SWITCH_DROP_NOT_MUTUAL,
		[REMOTE_QP_CONTESTED] = SWITCH_DROP_CONTESTED,
	};
	const enum remote_qp_service service = s->service == FRAME_RC ? REMOTE_QP_RC : REMOTE_QP_UC;
	const struct remote_qp_key to = destination_qp(s);
	enum remote_qp_access access;

	if (!is_for_same_host(rules, s))
		return drops[remote_qp_acl_check_other_host(rules->remotes, owner, service, &to)];
	access = remote_qp_acl_check_same_host(rules->remotes, owner, s->sip, &to);
	/* The peer's process has ended, so the frame is no forgery: forward.c drops it as NO_QP,
	 * because no process has its destination. */
	if (access == REMOTE_QP_NOT_MUTUAL && !lease_owner(rules->leases, s->dest_qpn))
		return SWITCH_NO_DROP;
	return drops[access];
}

enum switch_drop antispoof_check(const struct antispoof_rules *rules,
				 const struct switch_port *from, const struct frame_class *s)
{
	if (s->kind == FRAME_RUNT)
		return SWITCH_DROP_RUNT;
	if (!ether_same(s->smac, rules->host->mac))
		return SWITCH_DROP_SPOOFED_MAC;
	if (s->kind != FRAME_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	if (!s->whole)
		return SWITCH_DROP_MALFORMED;
	if (!host_find_in_vlan(rules->host, s->sip, s->vlan))
		return SWITCH_DROP_SPOOFED_IP;
	if (s->service == FRAME_NO_SERVICE)
		return SWITCH_DROP_NO_SERVICE;
	if (is_management(s))
		return SWITCH_DROP_MANAGEMENT;
	if (s->service == FRAME_CNP)
		return check_cnp(rules, &from->remotes, s);
	if (s->service != FRAME_DATAGRAM)
		return check_connection(rules, &from->remotes, s);
	return lease_owner(rules->leases, s->src_qpn) == from ? SWITCH_NO_DROP
							      : SWITCH_DROP_SPOOFED_QPN;
}
