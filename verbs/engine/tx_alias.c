/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/tx_alias.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 64u

/* At most half of the entries are used, so that each search ends soon. */
static int grow(struct tx_aliases *aliases)
{
	uint32_t size = aliases->entries ? 2 * (aliases->mask + 1) : FIRST_SIZE;
	struct tx_aliases larger = {.mask = size - 1, .n = aliases->n};

	if (aliases->entries && 2 * (aliases->n + 1) <= aliases->mask + 1)
		return 0;
	larger.entries = calloc(size, sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (uint32_t i = 0; aliases->entries && i <= aliases->mask; i++)
		if (aliases->entries[i].qpn)
			*tx_alias_entry(&larger, aliases->entries[i].qpn) = aliases->entries[i];
	free(aliases->entries);
	*aliases = larger;
	return 0;
}

int tx_alias_set(struct tx_aliases *aliases, uint32_t qpn, uint32_t process)
{
	int rc = grow(aliases);
	struct tx_alias *entry;

	if (rc)
		return rc;
	entry = tx_alias_entry(aliases, qpn);
	aliases->n += !entry->qpn;
	*entry = (struct tx_alias){qpn, process};
	return 0;
}

void tx_aliases_free(struct tx_aliases *aliases)
{
	free(aliases->entries);
	*aliases = (struct tx_aliases){0};
}
