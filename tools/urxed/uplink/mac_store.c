/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/mac_store.h"

#include <errno.h>
#include <string.h>

#define FORMAT "urxed machine MACs 1"

void mac_store_init(struct mac_store *store)
{
	*store = (struct mac_store){.file = {.fd = -1}, .keep_until = UINT64_MAX};
}

/* Returns the index of the kept MAC if it is kept for the user; otherwise store->n. */
static uint32_t find_kept(const struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN],
			  uid_t user)
{
	uint32_t i = 0;

	while (i < store->n &&
	       (store->kept[i].user != user || !ether_same(store->kept[i].mac, mac)))
		i++;
	return i;
}

static void keep_owner(struct mac_store *store, uint32_t slot, const struct mac_owner *owner)
{
	if (store->n == MAC_STORE_MAX || find_kept(store, owner->mac, owner->user) < store->n) {
		slot_file_drop(&store->file, slot);
		return;
	}
	store->kept[store->n] = *owner;
	store->slots[store->n++] = slot;
}

int mac_store_open(struct mac_store *store, const char *run_dir)
{
	int rc = slot_file_open(&store->file, run_dir, MAC_STORE_NAME, FORMAT);
	struct mac_owner owner;

	if (rc)
		return rc;
	for (uint32_t slot = 0;; slot++) {
		rc = slot_file_get(&store->file, slot, &owner, sizeof(owner));
		if (rc == -ENODATA)
			return 0;
		if (rc)
			slot_file_drop(&store->file, slot);
		else
			keep_owner(store, slot, &owner);
	}
}

void mac_store_close(struct mac_store *store, const char *run_dir, bool keep)
{
	slot_file_close(&store->file, run_dir, MAC_STORE_NAME, keep || store->n);
	store->n = 0;
}

uint64_t mac_store_tick(struct mac_store *store, uint64_t now)
{
	if (store->keep_until == UINT64_MAX)
		store->keep_until = now + MAC_STORE_KEEP_NS;
	while (store->n && now >= store->keep_until)
		slot_file_drop(&store->file, store->slots[--store->n]);
	return slot_file_tick(&store->file, now);
}

bool mac_store_is_kept(const struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user)
{
	for (uint32_t i = 0; i < store->n; i++)
		if (store->kept[i].user != user && ether_same(store->kept[i].mac, mac))
			return true;
	return false;
}

uint32_t mac_store_add(struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user)
{
	struct mac_owner owner = {.user = user};
	uint32_t i = find_kept(store, mac, user), slot = SLOT_FILE_NONE;

	memcpy(owner.mac, mac, sizeof(owner.mac));
	if (i < store->n) {
		slot = store->slots[i];
		store->kept[i] = store->kept[--store->n];
		store->slots[i] = store->slots[store->n];
	}
	return slot_file_put(&store->file, slot, &owner, sizeof(owner));
}

void mac_store_remove(struct mac_store *store, uint32_t slot)
{
	slot_file_drop(&store->file, slot);
}
