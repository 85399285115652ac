/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address conflict detection at start: does another host on the link have one of this host's
 * addresses? As RFC 5227 and RFC 4862 (5.4) require before an address is used.
 */
#ifndef URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H
#define URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H

#include <stdint.h>

#include "urxed/hostnet/host.h"
#include "urxed/uplink/uplink.h"

#define ADDRESS_CONFLICT_ERROR 256

/*
 * Probes for the addresses given by --address on uplinks that are kernel interfaces with a link;
 * the kernel has probed for its own. Takes half a second if there are any, and discards frames that
 * the uplinks receive meanwhile. -EADDRINUSE: `error` names the address and its owner.
 */
int address_conflict_probe(const struct host *h, struct uplink *uplinks,
			   char error[ADDRESS_CONFLICT_ERROR]);

#endif
