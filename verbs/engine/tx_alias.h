/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPNs that an HCA has chosen, and the processes of this host that have them. Such a QPN may be
 * outside of the blocks of its process, so VNIC_BLOCK() does not tell the process. For tx.c.
 */
#ifndef URXE_VERBS_ENGINE_TX_ALIAS_H
#define URXE_VERBS_ENGINE_TX_ALIAS_H

#include <stdbool.h>
#include <stdint.h>

struct tx_alias {
	uint32_t qpn;     /* 0: free */
	uint32_t process; /* number of the process: VNIC_BLOCK() of its first leased QPN */
};

struct tx_aliases {
	struct tx_alias *entries; /* a hash table with linear probing */
	uint32_t mask;
	uint32_t n;
};

/* Sets the process of the QPN, and replaces an earlier entry. 0 or -ENOMEM. */
int tx_alias_set(struct tx_aliases *aliases, uint32_t qpn, uint32_t process);
void tx_aliases_free(struct tx_aliases *aliases);

/* The entry of the QPN, or the free entry where it would be; `entries` is not NULL. */
static inline struct tx_alias *tx_alias_entry(const struct tx_aliases *aliases, uint32_t qpn)
{
	uint32_t at = qpn * 0x9e3779b1u >> 8 & aliases->mask;

	while (aliases->entries[at].qpn && aliases->entries[at].qpn != qpn)
		at = (at + 1) & aliases->mask;
	return &aliases->entries[at];
}

/* True: *process has the QPN. False: no entry; VNIC_BLOCK(qpn) is the process. */
static inline bool tx_alias_find(const struct tx_aliases *aliases, uint32_t qpn, uint32_t *process)
{
	const struct tx_alias *entry;

	if (__builtin_expect(!aliases->n, 1))
		return false;
	entry = tx_alias_entry(aliases, qpn);
	*process = entry->process;
	return entry->qpn != 0;
}

#endif
