/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address conflict detection: does another host on the link have one of this host's addresses? RFC
 * 5227 and RFC 4862 (5.4) require a probe before the first use of an address. The daemon calls this
 * at its start.
 */
#ifndef URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H
#define URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H

#include "urxed/hostnet/host.h"
#include "urxed/uplink/uplink_set.h"

#define ADDRESS_CONFLICT_ERROR 256

/*
 * Sends probes for each address of --address through the kernel interface of the address's uplink;
 * for an address of a bond, through the interfaces of all members. Omits interfaces without a link,
 * and addresses that the kernel has, too, because the kernel has probed for these. If there is
 * anything to probe and no conflict, this takes half a second, and discards the frames that these
 * uplinks receive meanwhile. Returns 0, or -EADDRINUSE: `error` names an address that another host
 * has, and that host's MAC.
 */
int address_conflict_probe(const struct host *h, struct uplink_set *uplinks,
			   char error[ADDRESS_CONFLICT_ERROR]);

#endif
