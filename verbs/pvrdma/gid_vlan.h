/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The VLANs of the machine's addresses. Linux' driver does not name the VLAN of a GID
 * (PV_NO_VLAN), so the device learns it from ARP packets and neighbour discovery (RFC 826, RFC
 * 4861) that the machine's NIC sends: the machine exchanges them before it sends to a new peer.
 *
 * The last packet counts, because Linux also answers ARP for an address of another interface. While
 * a connection uses a GID, the GID keeps its VLAN: other stations, which ask in another VLAN or
 * without a tag, cannot cut the connection.
 */
#ifndef URXE_PVRDMA_GID_VLAN_H
#define URXE_PVRDMA_GID_VLAN_H

#include "pvrdma_device.h"

/* Call it when the driver binds a GID without naming a VLAN. Returns the VLAN in which the machine
 * has last used the address; 0: none, or it has not used the address. */
uint16_t pv_gid_vlan_bind(struct pvrdma *dev, const struct urxe_gid *gid);
/* Call it after a restoration: copies the VLANs from the engine's GID table. */
void pv_gid_vlan_restore(struct pvrdma *dev);

#endif
