/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_gid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca_device.h"

/* The most entries of the HCA's table that are read; NICs have up to 256 for each port. */
#define TABLE_MAX 1024

/* Whether the entry of the HCA's table may be of the GID's interface. Interface index 0 stands for
 * any interface in *gid, and for an unknown one in *entry. */
static bool has_interface(const struct hca_gid *gid, const struct ibv_gid_entry *entry)
{
	return !gid->ifindex || !entry->ndev_ifindex || gid->ifindex == entry->ndev_ifindex;
}

/* Whether the entry of the HCA's table is that of the GID. An entry with an index above UINT8_MAX
 * does not count, because struct ibv_ah_attr has no room for the index. */
static bool is_entry(const struct hca *hca, const struct hca_gid *gid,
		     const struct ibv_gid_entry *entry)
{
	uint32_t type = gid->v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;

	return entry->port_num == hca->port && entry->gid_type == type &&
	       entry->gid_index <= UINT8_MAX && has_interface(gid, entry) &&
	       !memcmp(entry->gid.raw, gid->gid.raw, sizeof(gid->gid.raw));
}

static void find_gid_index(const struct hca *hca, struct hca_gid *gid,
			   const struct ibv_gid_entry *table, ssize_t n)
{
	gid->index = -1;
	for (ssize_t i = 0; gid->valid && i < n; i++)
		if (is_entry(hca, gid, &table[i])) {
			gid->index = (int16_t)table[i].gid_index;
			return;
		}
}

/* Reads the HCA's GID table to *table, which the caller frees. Returns the number of entries, or a
 * negative errno value. */
static ssize_t read_table(const struct hca *hca, struct ibv_gid_entry **table)
{
	ssize_t n;

	*table = calloc(TABLE_MAX, sizeof(**table));
	if (!*table)
		return -ENOMEM;
	n = hca->verbs->query_gid_table(hca->context, *table, TABLE_MAX, 0, sizeof(**table));
	return n > TABLE_MAX ? TABLE_MAX : n;
}

void hca_read_gids(struct hca *hca)
{
	struct ibv_gid_entry *table;
	ssize_t n = read_table(hca, &table);

	hca->gids.unread = n < 0;
	for (int i = 0; n >= 0 && i < URXE_MAX_GIDS; i++)
		find_gid_index(hca, &hca->gids.entries[i], table, n);
	free(table);
}

void hca_set_gid(struct hca *hca, uint32_t index, const struct urxe_gid *gid, bool v1,
		 uint32_t ifindex)
{
	struct hca_gid *entry = &hca->gids.entries[index];

	if (gid && entry->valid && entry->v1 == v1 && entry->ifindex == ifindex &&
	    !memcmp(&entry->gid, gid, sizeof(*gid)))
		return;
	*entry = (struct hca_gid){.valid = gid != NULL, .v1 = v1, .index = -1, .ifindex = ifindex};
	if (gid)
		entry->gid = *gid;
}

int hca_gid_index(const struct hca *hca, uint32_t index)
{
	const struct hca_gid *entry = index < URXE_MAX_GIDS ? &hca->gids.entries[index] : NULL;

	return entry && entry->valid ? entry->index : -1;
}

bool hca_has_gid(struct hca *hca, uint32_t index)
{
	if (hca->gids.unread && hca_gid_index(hca, index) < 0)
		hca_read_gids(hca);
	return hca_gid_index(hca, index) >= 0;
}
