/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash tables of fixed size that map keys of fixed length to numbers: DPDK's rte_hash, without
 * DPDK's headers for the caller. fdb, remote_qp_acl and qpn_table use them. DPDK's EAL must run
 * (netdev_dpdk_start). hash_create allocates all memory, so the given number of entries always
 * fits.
 */
#ifndef URXE_URXED_SWITCH_TABLES_DPDK_HASH_H
#define URXE_URXED_SWITCH_TABLES_DPDK_HASH_H

#include <stdint.h>

struct hash;

/* name: unique in this process; entries: number of entries, at least 8. Returns 0 or a negative
 * errno value. */
int hash_create(const char *name, uint32_t entries, uint32_t key_len, struct hash **hash);
/* Frees the table; accepts NULL. */
void hash_destroy(struct hash *hash);

/* Returns the number of the key, or -1 if the key is not in the table. */
int64_t hash_get(const struct hash *hash, const void *key);
/* Adds a key or changes its number. Returns 0; -ENOSPC: the table is full. */
int hash_set(struct hash *hash, const void *key, uint32_t number);
void hash_remove(struct hash *hash, const void *key);

#endif
