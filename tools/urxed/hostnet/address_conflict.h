/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address conflict detection: does another host on the link have one of this host's addresses?
 * RFC 5227 and RFC 4862 (5.4) require the probe before the first use. The daemon calls it at start.
 */
#ifndef URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H
#define URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H

#include "urxed/hostnet/host.h"
#include "urxed/uplink/uplink_set.h"

#define ADDRESS_CONFLICT_ERROR 256

/*
 * Sends probes for each address of --address on the kernel interface of its uplink; for an address
 * of a bond on the interfaces of all members. Omits interfaces without a link, and addresses that
 * the kernel has too, because the kernel has probed for those. Takes half a second if there is
 * anything to probe, and discards the frames that these uplinks receive meanwhile. -EADDRINUSE:
 * `error` names the address and the MAC of its owner.
 */
int address_conflict_probe(const struct host *h, struct uplink_set *uplinks,
			   char error[ADDRESS_CONFLICT_ERROR]);

#endif
