/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses MACs and VLAN IDs as users write them in options. */
#ifndef URXE_URXED_HOSTNET_ETHER_TEXT_H
#define URXE_URXED_HOSTNET_ETHER_TEXT_H

#include "common/ether.h"

/* Reads a MAC at the beginning of `text`, and returns the text behind it. NULL: the text does not
 * begin with six pairs of hexadecimal digits and colons between them; mac may have changed. */
const char *ether_read_mac(const char *text, uint8_t mac[ETHER_MAC_LEN]);
/*
 * Reads a VLAN ID, which may be 0, at the beginning of `text`, and returns the text behind it.
 * NULL: the text does not begin with a decimal number up to ETHER_VLAN_MAX; *vlan may have changed.
 */
const char *ether_read_vlan(const char *text, uint16_t *vlan);

#endif
