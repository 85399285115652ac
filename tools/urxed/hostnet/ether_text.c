/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/ether_text.h"

#include <ctype.h>
#include <stdlib.h>

const char *ether_read_mac(const char *text, uint8_t mac[ETHER_MAC_LEN])
{
	for (int i = 0; i < ETHER_MAC_LEN; i++, text += 2) {
		const char digits[3] = {text[0], text[0] ? text[1] : '\0'};

		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
			return NULL;
		mac[i] = (uint8_t)strtoul(digits, NULL, 16);
		if (i == ETHER_MAC_LEN - 1)
			continue;
		if (text[2] != ':')
			return NULL;
		text++;
	}
	return text;
}

const char *ether_read_vlan(const char *text, uint16_t *vlan)
{
	unsigned long id;
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	id = strtoul(text, &end, 10);
	*vlan = (uint16_t)id;
	return id <= ETHER_VLAN_MAX ? end : NULL;
}
