/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parser of a pinned MAC. It is not in fdb.c, because the option parser needs no table. */
#include <errno.h>
#include <stddef.h>

#include "urxed/hostnet/ether_text.h"
#include "urxed/switch/tables/fdb.h"

static const char *parse_fdb_vlan(const char *text, uint16_t *vlan)
{
	*vlan = FDB_ANY_VLAN;
	return *text == '@' ? ether_read_vlan(text + 1, vlan) : text;
}

int fdb_parse(const char *text, struct fdb_key *key, const char **port)
{
	text = ether_read_mac(text, key->mac);
	if (text)
		text = parse_fdb_vlan(text, &key->vlan);
	if (!text || text[0] != '=' || !text[1] || !ether_is_station(key->mac))
		return -EINVAL;
	*port = text + 1;
	return 0;
}
