/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "source.h"

#include <rxe/packet.h>

#define MAY_SEND SWITCH_DROP_COUNT

/*
 * QP0 and QP1 speak for the host: only the daemon sends from them. It alone sends
 * to them, too: the Q_Key of QP1 is a controlled one (IBA 3.5.3), which
 * unprivileged consumers may not use.
 */
static bool is_management(const struct steer *s)
{
	return s->dest_qpn <= URXE_QPN_GSI ||
	       (s->service == STEER_DATAGRAM && s->src_qpn <= URXE_QPN_GSI);
}

static enum switch_drop check_qpns(const struct lease_table *leases, const struct switch_port *from,
				   const struct steer *s)
{
	if (is_management(s))
		return SWITCH_DROP_MANAGEMENT;
	if (s->service == STEER_DATAGRAM && lease_owner(leases, s->src_qpn) != from)
		return SWITCH_DROP_SPOOFED_QPN;
	if (s->service == STEER_CONNECTED && s->dest_qpn == URXE_QPN_MULTICAST)
		return SWITCH_DROP_MULTICAST;
	return MAY_SEND;
}

enum switch_drop source_check(const struct host *host, const struct lease_table *leases,
			      const struct switch_port *from, const struct steer *s)
{
	if (s->kind == STEER_RUNT)
		return SWITCH_DROP_RUNT;
	if (!ether_same(s->smac, host->mac))
		return SWITCH_DROP_SPOOFED_MAC;
	if (s->kind != STEER_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	if (!s->whole)
		return SWITCH_DROP_MALFORMED;
	if (!host_has(host, s->sip, s->vlan))
		return SWITCH_DROP_SPOOFED_IP;
	if (s->service == STEER_NO_SERVICE)
		return SWITCH_DROP_NO_SERVICE;
	return check_qpns(leases, from, s);
}
