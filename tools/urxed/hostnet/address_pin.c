/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/address_pin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>

#include "urxed/hostnet/ether_text.h"

static int parse_ip(const char *text, size_t len, uint8_t ip[16])
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t v4[4];

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, v4) == 1)
		ip_from_v4(ip, v4);
	else if (inet_pton(AF_INET6, copy, ip) != 1)
		return -EINVAL;
	return ip[0] == 0xff || (ip_is_v4(ip) && ip[12] >> 4 == 0xe) ? -EINVAL : 0;
}

static int parse_vlan(const char *text, const char *end, uint16_t *vlan)
{
	return ether_read_vlan(text, vlan) == end && *vlan ? 0 : -EINVAL;
}

static int parse_mac(const char *text, uint8_t mac[ETHER_MAC_LEN])
{
	text = ether_read_mac(text, mac);
	return !text || *text || !ether_is_station(mac) ? -EINVAL : 0;
}

int address_pin_parse(const char *text, struct address_pin *pin)
{
	const char *equals = strchr(text, '='), *at = strchr(text, '@');
	int rc;

	*pin = (struct address_pin){.vlan = ADDRESS_PIN_ANY_VLAN};
	if (!equals)
		return -EINVAL;
	if (at > equals)
		at = NULL;
	rc = parse_ip(text, (size_t)((at ? at : equals) - text), pin->ip);
	if (!rc && at)
		rc = parse_vlan(at + 1, equals, &pin->vlan);
	return rc ? rc : parse_mac(equals + 1, pin->mac);
}

int address_pins_add(struct address_pins *pins, const struct address_pin *pin)
{
	for (uint32_t i = 0; i < pins->n; i++)
		if (pins->at[i].vlan == pin->vlan && !memcmp(pins->at[i].ip, pin->ip, 16))
			return -EEXIST;
	if (pins->n == ADDRESS_PINS)
		return -ENOSPC;
	pins->at[pins->n++] = *pin;
	return 0;
}

/* A pin for this VLAN takes precedence over a pin for all VLANs. */
const uint8_t *address_pins_find(const struct address_pins *pins, const uint8_t ip[16],
				 uint16_t vlan)
{
	const uint8_t *mac = NULL;

	for (uint32_t i = 0; i < pins->n; i++) {
		const struct address_pin *pin = &pins->at[i];

		if (memcmp(pin->ip, ip, 16))
			continue;
		if (pin->vlan == vlan)
			return pin->mac;
		if (pin->vlan == ADDRESS_PIN_ANY_VLAN)
			mac = pin->mac;
	}
	return mac;
}

bool address_pins_allow(const struct address_pins *pins, const uint8_t ip[16], uint16_t vlan,
			const uint8_t mac[ETHER_MAC_LEN])
{
	const uint8_t *pinned = address_pins_find(pins, ip, vlan);

	return !pinned || ether_same(pinned, mac);
}
