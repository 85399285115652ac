/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The VLANs of the machine's addresses. Linux' driver binds a GID without naming its VLAN
 * (PV_NO_VLAN). But before the machine sends to a new peer, its NIC sends ARP or neighbour
 * discovery packets (RFC 826, RFC 4861). So the device takes the VLAN of an address from the tag of
 * such packets that name the address as their sender.
 *
 * A later packet replaces the VLAN of an earlier one, which may be that of another interface: Linux
 * also answers ARP there for the address. While a connection uses a GID, the GID keeps its VLAN:
 * other stations, which ask in another VLAN or without a tag, cannot cut the connection.
 */
#ifndef URXE_PVRDMA_GID_VLAN_H
#define URXE_PVRDMA_GID_VLAN_H

#include "pvrdma_device.h"

/* Call it when the driver binds a GID without naming a VLAN. Returns the VLAN of the machine's last
 * ARP or ND packet from the address; 0: untagged, or no such packet is known. */
uint16_t pv_gid_vlan_bind(struct pvrdma *dev, const struct urxe_gid *gid);
/* Call it after a restoration: copies the VLANs from the engine's GID table. */
void pv_gid_vlan_restore(struct pvrdma *dev);

#endif
