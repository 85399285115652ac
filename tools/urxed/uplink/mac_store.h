/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stores the MACs of machines (vm_port_set.h) and their users in the file urxed.macs of the run
 * directory. After a restart of the daemon, the machine of another user cannot take such a MAC
 * before the device process of the MAC's machine has found the new daemon.
 */
#ifndef URXE_URXED_UPLINK_MAC_STORE_H
#define URXE_URXED_UPLINK_MAC_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/ether.h"
#include "urxed/session/slot_file.h"

#define MAC_STORE_NAME "urxed.macs"
/*
 * How long a new daemon keeps the MACs that an earlier one has stored, ns: longer than the pause of
 * a device process after a daemon that has not answered, with its wait for the answer.
 */
#define MAC_STORE_KEEP_NS 15000000000ull
#define MAC_STORE_MAX     64 /* kept MACs */

struct mac_owner {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t reserved;
	uint32_t user;
};

struct mac_store {
	struct slot_file file;
	uint64_t keep_until; /* ns; UINT64_MAX before mac_store_begin */
	uint32_t n;
	struct mac_owner kept[MAC_STORE_MAX]; /* from an earlier daemon */
	uint32_t slots[MAC_STORE_MAX];        /* of the kept ones in the file */
};

void mac_store_init(struct mac_store *store);
/* Reads the MACs of an earlier daemon. Returns 0 or a negative errno value. */
int mac_store_open(struct mac_store *store, const char *run_dir);
/* Later calls change the file no more. `keep`: the file stays for the next daemon. */
void mac_store_close(struct mac_store *store, const char *run_dir, bool keep);
/* Call it when the daemon serves: from the first call on, kept MACs stay for MAC_STORE_KEEP_NS. */
void mac_store_tick(struct mac_store *store, uint64_t now);

/* Whether the MAC is kept for another user. */
bool mac_store_is_kept(const struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user);
/* Stores the MAC of a machine that has joined, for mac_store_remove. Returns the MAC's slot. */
uint32_t mac_store_add(struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user);
void mac_store_remove(struct mac_store *store, uint32_t slot);

#endif
