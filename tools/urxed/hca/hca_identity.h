/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gives a host without an uplink the MAC, MTU and addresses of its HCA. A host with an uplink takes
 * them from the kernel's interface (kernel_sync.h). daemon_start.c calls this. */
#ifndef URXE_URXED_HCA_HCA_IDENTITY_H
#define URXE_URXED_HCA_HCA_IDENTITY_H

#include "urxed/hca/hca_scan.h"
#include "urxed/hostnet/host.h"

/*
 * Sets the host's MAC to the port's, unless that is unknown. Call it only before the first process
 * attaches: processes keep the MAC that they got.
 */
void hca_identity_set_mac(const struct hca_port *p, struct host *h);
/*
 * Makes the port's GIDs that are unicast addresses the host's addresses, beside those of --address.
 * Limits the host's MTU (bytes of Ethernet payload) to what a packet of the port's path MTU, if
 * that is below 4096, needs with all headers. Addresses that the host had before keep their GID
 * index. Returns the number of addresses for which the table had no room.
 */
uint32_t hca_identity_set_addresses(const struct hca_port *p, struct host *h);

#endif
