/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_pkey.h"

#include <arpa/inet.h>

#include "hca_device.h"

/* The most entries of the HCA's table that are read. RoCE devices have one. */
#define TABLE_MAX 128

static void note_pkey_index(struct hca *hca, int16_t at, uint16_t pkey)
{
	struct hca_pkeys *pkeys = &hca->pkeys;

	for (int i = 0; i < URXE_MAX_PKEYS; i++)
		if (pkeys->entries[i] == pkey && pkeys->index[i] < 0)
			pkeys->index[i] = at;
}

void hca_set_pkeys(struct hca *hca, const uint16_t *pkeys, uint32_t n)
{
	hca->pkeys = (struct hca_pkeys){0};
	for (uint32_t i = 0; i < URXE_MAX_PKEYS; i++) {
		hca->pkeys.entries[i] = i < n ? pkeys[i] : 0;
		hca->pkeys.index[i] = -1;
	}
	for (int16_t at = 0; at < TABLE_MAX; at++) {
		__be16 pkey;

		if (hca->verbs->query_pkey(hca->context, hca->port, at, &pkey))
			return;
		if (pkey)
			note_pkey_index(hca, at, ntohs(pkey));
	}
}

int hca_pkey_index(const struct hca *hca, uint32_t index)
{
	return index < URXE_MAX_PKEYS ? hca->pkeys.index[index] : -1;
}
