/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parser of a pinned MAC, apart from the table because the option parser needs only this. */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "urxed/switch/tables/fdb.h"

static const char *parse_fdb_mac(const char *text, uint8_t mac[ETHER_MAC_LEN])
{
	for (int i = 0; i < ETHER_MAC_LEN; i++, text += 2) {
		const char digits[3] = {text[0], text[0] ? text[1] : '\0'};

		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
			return NULL;
		mac[i] = (uint8_t)strtoul(digits, NULL, 16);
		if (i < ETHER_MAC_LEN - 1 && text[2] != ':')
			return NULL;
		if (i < ETHER_MAC_LEN - 1)
			text++;
	}
	return text;
}

static const char *parse_fdb_vlan(const char *text, uint16_t *vlan)
{
	unsigned long id;
	char *end;

	*vlan = FDB_ANY_VLAN;
	if (*text != '@')
		return text;
	if (!isdigit((unsigned char)text[1]))
		return NULL;
	id = strtoul(text + 1, &end, 10);
	*vlan = (uint16_t)id;
	return id <= ETHER_VLAN_MAX ? end : NULL;
}

int fdb_parse(const char *text, struct fdb_key *key, const char **port)
{
	text = parse_fdb_mac(text, key->mac);
	if (text)
		text = parse_fdb_vlan(text, &key->vlan);
	if (!text || text[0] != '=' || !text[1] || ether_is_group(key->mac))
		return -EINVAL;
	*port = text + 1;
	return 0;
}
