/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads facts about the network interfaces of HCAs from sysfs. hca_scan, hca_gids, hca_select and
 * hca_monitor call this. `sys`: where sysfs is mounted. */
#ifndef URXE_URXED_HCA_HCA_NETDEV_H
#define URXE_URXED_HCA_HCA_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

/* Reads the MAC of an interface. Returns false if the interface is no Ethernet or has no MAC. */
bool hca_netdev_mac(const char *sys, const char *ifname, uint8_t mac[ETHER_MAC_LEN]);
/* Returns the VLAN ID of an interface of the kernel's type vlan; 0: the interface is of another
 * type. */
uint16_t hca_netdev_vlan(const char *sys, const char *ifname);
/* The largest path MTU (256 to 4096) of RoCE packets on the interface; 0: too small or unknown. */
uint16_t hca_netdev_path_mtu(const char *sys, const char *ifname);
/*
 * Whether frames of interface `upper` leave by `lower`: the two are one interface, or `lower` is
 * below `upper`, as the port of a bridge, the member of a bond, or the device of a VLAN.
 */
bool hca_netdev_is_above(const char *sys, const char *upper, const char *lower);

#endif
