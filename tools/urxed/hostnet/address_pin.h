/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pinned addresses (--fdb ADDR[@VLAN]=MAC): IP addresses whose MAC is fixed. The switch drops
 * RoCE packets, ARP and ND of other stations that use such an address, and neigh.c resolves the
 * address without a solicitation.
 */
#ifndef URXE_URXED_HOSTNET_ADDRESS_PIN_H
#define URXE_URXED_HOSTNET_ADDRESS_PIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

#define ADDRESS_PINS         64     /* as many as --fdb options (DAEMON_FDB) */
#define ADDRESS_PIN_ANY_VLAN 0xffff /* valid in all VLANs */

struct address_pin {
	uint8_t ip[16];
	uint16_t vlan; /* VLAN ID, 0 = none, or ADDRESS_PIN_ANY_VLAN */
	uint8_t mac[ETHER_MAC_LEN];
};

struct address_pins {
	struct address_pin at[ADDRESS_PINS];
	uint32_t n;
};

/* Parses "ADDR=MAC" or "ADDR@VLAN=MAC" with a VLAN from 1 to 4094. Returns 0; -EINVAL: the text is
 * malformed, the address is a group's, or no station can have the MAC. */
int address_pin_parse(const char *text, struct address_pin *pin);
/* Returns 0; -EEXIST: the address has a pin for that VLAN already; -ENOSPC: ADDRESS_PINS exist. */
int address_pins_add(struct address_pins *pins, const struct address_pin *pin);
/* Returns the MAC that is pinned to an address for this VLAN, else the one for all VLANs. NULL: the
 * address is not pinned there. */
const uint8_t *address_pins_find(const struct address_pins *pins, const uint8_t ip[16],
				 uint16_t vlan);
/*
 * Whether a station with this MAC may use the address: true if the address is pinned to this MAC,
 * or to none.
 */
bool address_pins_allow(const struct address_pins *pins, const uint8_t ip[16], uint16_t vlan,
			const uint8_t mac[ETHER_MAC_LEN]);

#endif
