/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/tables/dpdk_hash.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_jhash.h>

struct hash {
	struct rte_hash *rte;
};

int hash_create(const char *name, uint32_t entries, uint32_t key_len, struct hash **hash)
{
	const struct rte_hash_parameters params = {
		.name = name,
		.entries = entries,
		.key_len = key_len,
		.hash_func = rte_jhash,
		.socket_id = SOCKET_ID_ANY,
		/* Without this flag, cuckoo hashing may fail to place a key although entries are
		 * free. */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};
	struct hash *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->rte = rte_hash_create(&params);
	if (!h->rte) {
		free(h);
		return rte_errno ? -rte_errno : -ENOMEM;
	}
	*hash = h;
	return 0;
}

void hash_destroy(struct hash *hash)
{
	if (!hash)
		return;
	rte_hash_free(hash->rte);
	free(hash);
}

int64_t hash_get(const struct hash *hash, const void *key)
{
	void *number;

	return rte_hash_lookup_data(hash->rte, key, &number) < 0 ? -1 : (int64_t)(uintptr_t)number;
}

int hash_set(struct hash *hash, const void *key, uint32_t number)
{
	return rte_hash_add_key_data(hash->rte, key, (void *)(uintptr_t)number);
}

void hash_remove(struct hash *hash, const void *key)
{
	rte_hash_del_key(hash->rte, key);
}
