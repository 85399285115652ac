/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MACs and VLAN IDs, as users write them in options. */
#ifndef URXE_URXED_HOSTNET_ETHER_TEXT_H
#define URXE_URXED_HOSTNET_ETHER_TEXT_H

#include "common/ether.h"

/*
 * Both read the beginning of `text`, and return the rest. NULL: the text does not
 * begin with six pairs of hexadecimal digits and colons between them, or with a decimal number up
 * to ETHER_VLAN_MAX.
 */
const char *ether_read_mac(const char *text, uint8_t mac[ETHER_MAC_LEN]);
const char *ether_read_vlan(const char *text, uint16_t *vlan);

#endif
