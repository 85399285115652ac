/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/antispoof.h"

#include <rxe/packet.h>

/*
 * QP0 and QP1 belong to the host, so only the daemon sends from them. Only the daemon sends to
 * them, too: QP1's Q_Key is a controlled one (IBA 3.5.3), which unprivileged consumers may not use.
 */
static bool is_management(const struct frame_class *s)
{
	return s->dest_qpn <= URXE_QPN_GSI ||
	       (s->service == FRAME_DATAGRAM && s->src_qpn <= URXE_QPN_GSI);
}

/*
 * RC and UC go only to remote QPs that the process has registered. A CNP slows its receiver down.
 * UD QPs answer datagrams with CNPs, so a CNP may also go to a remote QP that no process here has
 * registered.
 */
static bool may_send_to_qp(const struct remote_qp_acl *remotes, const struct switch_port *from,
			   const struct frame_class *s)
{
	const struct remote_qp_owner *owner;
	struct remote_qp_key key = {.qpn = s->dest_qpn};

	memcpy(key.gid, s->dip, sizeof(key.gid));
	owner = remote_qp_acl_find(remotes, &key);
	return owner == &from->remotes || (!owner && s->service == FRAME_CNP);
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
	if (!host_has_address(rules->host, s->sip, s->vlan))
		return SWITCH_DROP_SPOOFED_IP;
	if (s->service == FRAME_NO_SERVICE)
		return SWITCH_DROP_NO_SERVICE;
	if (is_management(s))
		return SWITCH_DROP_MANAGEMENT;
	if (s->service != FRAME_DATAGRAM)
		return may_send_to_qp(rules->remotes, from, s) ? SWITCH_NO_DROP
							       : SWITCH_DROP_UNREGISTERED;
	return lease_owner(rules->leases, s->src_qpn) == from ? SWITCH_NO_DROP
							      : SWITCH_DROP_SPOOFED_QPN;
}
