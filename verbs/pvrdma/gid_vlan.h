/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The VLANs of the machine's addresses. Linux' driver does not name the VLAN of a GID
 * (PV_NO_VLAN), so the device learns it from ARP packets and neighbour discovery (RFC 826, RFC
 * 4861) that the machine's NIC sends: the machine exchanges them before it sends to a new peer.
 *
 * Linux also names an address of one interface as the sender on another one. So an address that was
 * in a packet without a tag stays outside of VLANs, until the driver binds it anew.
 */
#ifndef URXE_PVRDMA_GID_VLAN_H
#define URXE_PVRDMA_GID_VLAN_H

#include "pvrdma_device.h"

/* Call it when the driver binds a GID: the VLAN in which its address was seen; 0: none, or it was
 * not seen. */
uint16_t pv_gid_vlan_bind(struct pvrdma *dev, const struct urxe_gid *gid);
/* Takes the VLANs of the engine's GID table, which a restored device has. */
void pv_gid_vlan_restore(struct pvrdma *dev);

#endif
