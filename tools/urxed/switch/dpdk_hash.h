/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash tables of a fixed size: DPDK's rte_hash, from keys of a fixed length to numbers.
 * DPDK's environment has to be up (netdev_dpdk_start). Nothing is allocated after
 * hash_create, and what it was made for always fits.
 */
#ifndef URXE_URXED_SWITCH_DPDK_HASH_H
#define URXE_URXED_SWITCH_DPDK_HASH_H

#include <stdbool.h>
#include <stdint.h>

struct hash;

/* name: of no other table of this process; entries: 8 at least. 0, or a negative errno value. */
int hash_create(const char *name, uint32_t entries, uint32_t key_len, struct hash **hash);
/* Nothing for NULL. */
void hash_destroy(struct hash *hash);

/* -1: the key is not there. */
int64_t hash_get(const struct hash *hash, const void *key);
/* Adds a key or changes its number. -ENOSPC: the table is full. */
int hash_set(struct hash *hash, const void *key, uint32_t number);
void hash_remove(struct hash *hash, const void *key);

#endif
