/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stores the MACs of machines (vm_port_set.h) and their users in the file urxed.macs of the run
 * directory. For MAC_STORE_KEEP_NS after a restart of the daemon, confined machines (struct
 * vm_port) of other users cannot take such a MAC, so that its machine's device process has time to
 * find the new daemon.
 */
#ifndef URXE_URXED_UPLINK_MAC_STORE_H
#define URXE_URXED_UPLINK_MAC_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/ether.h"
#include "urxed/session/slot_file.h"

#define MAC_STORE_NAME "urxed.macs"
/* Time for which a new daemon keeps the MACs that an earlier one has stored, ns. A device process
 * that waits in vain for an answer, and then pauses, tries again sooner (switch_link.c). */
#define MAC_STORE_KEEP_NS 15000000000ull
#define MAC_STORE_MAX     64 /* most MACs that are kept */

struct mac_owner {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t reserved;
	uint32_t user;
};

struct mac_store {
	struct slot_file file;
	uint64_t keep_until; /* end of MAC_STORE_KEEP_NS, ns; UINT64_MAX before the first tick */
	uint32_t n;
	struct mac_owner kept[MAC_STORE_MAX]; /* MACs from an earlier daemon */
	uint32_t slots[MAC_STORE_MAX];        /* slots of these in the file */
};

void mac_store_init(struct mac_store *store);
/* Reads the MACs of an earlier daemon. Returns 0 or a negative errno value. */
int mac_store_open(struct mac_store *store, const char *run_dir);
/* Closes the file, so that later calls do not change it. Removes the file, unless `keep` is set or
 * an earlier daemon's MACs are still kept; then it stays for the next daemon. */
void mac_store_close(struct mac_store *store, const char *run_dir, bool keep);
/*
 * Call it repeatedly when the daemon serves. It keeps the MACs of an earlier daemon for
 * MAC_STORE_KEEP_NS from the first call on, and then drops them. Returns the time of the next call
 * in ns if MACs could not be written; else UINT64_MAX.
 */
uint64_t mac_store_tick(struct mac_store *store, uint64_t now);

/* Returns whether the MAC is kept for a user other than `user`. */
bool mac_store_is_kept(const struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user);
/* Stores the MAC of a machine that has joined. Returns the MAC's slot for mac_store_remove. Returns
 * SLOT_FILE_NONE if it could not be stored; mac_store_remove then does nothing. */
uint32_t mac_store_add(struct mac_store *store, const uint8_t mac[ETHER_MAC_LEN], uid_t user);
void mac_store_remove(struct mac_store *store, uint32_t slot);

#endif
