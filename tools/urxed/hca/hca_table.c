/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add_text(char text[HCA_TABLE_TEXT],
							   const char *fmt, ...)
{
	size_t at = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + at, HCA_TABLE_TEXT - at, fmt, ap);
	va_end(ap);
}

static void add_hex(char text[HCA_TABLE_TEXT], const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_text(text, "%02x", bytes[i]);
}

/* Returns the index of the P_Key in urxe0's P_Key table; -1: the table lacks it. */
static int find_pkey(const struct host *h, uint16_t pkey)
{
	for (uint32_t i = 0; i < h->n_pkeys; i++)
		if (h->pkeys[i] == pkey)
			return (int)i;
	return -1;
}

/* Returns the index in urxe0's GID table of the entry with the same GID, RoCE version and
 * interface; -1: the table has none. */
static int find_gid(const struct host *h, const struct hca_table_gid *gid)
{
	const uint32_t first = gid->v2 ? 0 : HOST_ADDRESSES;

	for (uint32_t i = first; i < first + HOST_ADDRESSES; i++) {
		const struct host_address *a = host_address_by_gid(h, i);

		if (a && !memcmp(a->ip, gid->ip, sizeof(gid->ip)) &&
		    (!a->ifindex || !gid->ifindex || a->ifindex == gid->ifindex))
			return (int)i;
	}
	return -1;
}

static bool has_all_pkeys(const struct host *h)
{
	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		if (h->hca_table.pkeys[i] && find_pkey(h, h->hca_table.pkeys[i]) < 0)
			return false;
	return true;
}

/* Whether sysfs has shown the GUID and at least one P_Key; a port that exists has at least the
 * default P_Key. */
static bool is_known(const struct hca_table *t)
{
	static const uint8_t no_guid[sizeof(t->guid)];
	static const uint16_t no_pkeys[VNIC_ATTACH_PKEYS];

	return memcmp(t->guid, no_guid, sizeof(no_guid)) != 0 &&
	       memcmp(t->pkeys, no_pkeys, sizeof(no_pkeys)) != 0;
}

void hca_table_print(const struct host *h, char text[HCA_TABLE_TEXT])
{
	const struct hca_table *t = &h->hca_table;
	uint8_t guid[8];

	text[0] = '\0';
	if (!is_known(t))
		return;
	host_node_guid(h, guid);
	add_text(text, "port ");
	add_hex(text, t->guid, sizeof(t->guid));
	add_text(text, " %u ", h->hca.port);
	add_hex(text, guid, sizeof(guid));
	add_text(text, " %s\n", h->hca.name);
	if (t->may_lack_gids || t->mtu > host_path_mtu(h) || !has_all_pkeys(h))
		add_text(text, "closed\n");
	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		if (t->pkeys[i])
			add_text(text, "pkey %u %d\n", i, find_pkey(h, t->pkeys[i]));
	for (uint32_t i = 0; i < t->n_gids; i++) {
		add_text(text, "gid %u %d ", t->gids[i].index, find_gid(h, &t->gids[i]));
		add_hex(text, t->gids[i].ip, sizeof(t->gids[i].ip));
		add_text(text, "\n");
	}
}
