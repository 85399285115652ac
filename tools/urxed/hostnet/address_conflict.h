/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether somebody else on the link has an address that this host is to have, as
 * RFC 5227 and RFC 4862 (5.4) would have it asked before an address is used.
 */
#ifndef URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H
#define URXE_URXED_HOSTNET_ADDRESS_CONFLICT_H

#include <stdint.h>

#include "urxed/hostnet/host.h"
#include "urxed/uplink/uplink.h"

#define ADDRESS_CONFLICT_ERROR 256

/*
 * Asks for the addresses that were given by --address, where the uplink is an
 * interface that has a link; for those of the kernel the kernel has asked. Waits for
 * half a second where there are any, and takes what the uplinks receive meanwhile.
 * -EADDRINUSE: `error` says who has which.
 */
int address_conflict_probe(const struct host *h, struct uplink *uplinks,
			   char error[ADDRESS_CONFLICT_ERROR]);

#endif
