/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The entries of neigh.h: MACs of addresses, and addresses under resolution.
 *
 * An entry belongs to the user for whom it was made; entries for replies to other hosts belong to
 * NEIGH_PEERS. A user has a quota (quota.h) of all entries, and one of entries that wait for an
 * answer. If a quota is used up, or the table is full, a new entry replaces the oldest entry of the
 * same user. If the table is full and a user has no entry, the new one replaces the oldest resolved
 * entry of users without quota, or else the oldest resolved one of all. So no user displaces more
 * than one entry of others.
 *
 * Stations with new addresses cannot make the host forget its peers, because proven entries stay.
 * An entry becomes proven when the host uses it again after the resolution, or later when its turn
 * to be replaced comes, if a place for a proven entry is left. A user's places are a quarter of the
 * entries that other users do not hold; entries with the same MAC may take half of these places. So
 * a station that answers for many addresses leaves places for other stations. If no place is left,
 * a proven entry loses its place only after NEIGH_PROVEN_IDLE_NS without use, or if all entries of
 * its user are proven. So stations with many MACs can take free places, but not those of active
 * peers.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_TABLE_H
#define URXE_URXED_HOSTNET_NEIGH_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "urxed/hostnet/host.h"

#define NEIGH_ENTRIES        1024
#define NEIGH_INCOMPLETE_MAX 256 /* entries in NEIGH_INCOMPLETE */
#define NEIGH_BUCKETS        256u
#define NEIGH_PROVEN_IDLE_NS 3600000000000ull /* idle time until a proven entry may be replaced */

/* Owner of the entries for MADs of QP1, mostly replies to other hosts; a quota applies to it as to
 * a user. */
#define NEIGH_PEERS ((uid_t)-1)

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, /* waits for the answer of any station, or for the kernel */
	NEIGH_REACHABLE,  /* the MAC is confirmed, and valid until `due` */
	NEIGH_PROBING,    /* the station with the known MAC is solicited again */
};

/*
 * The resolver of an address: the daemon, or the kernel (neigh.h says which). An address may have
 * an entry for each resolver and uplink, because networks on different uplinks may use the same
 * link-local addresses.
 */
enum neigh_resolver { NEIGH_BY_DAEMON, NEIGH_BY_KERNEL };

struct neigh_key {
	uint8_t ip[16];
	uint16_t vlan; /* VLAN ID; 0 = none */
	int uplink;    /* of the host's address from which the neighbour is reached; HOST_NO_UPLINK:
			  only virtual machines have such neighbours */
	enum neigh_resolver resolver;
};

struct neigh_waiter;
LIST_HEAD(neigh_waiter_list, neigh_waiter);

struct neigh_entry {
	LIST_ENTRY(neigh_entry) link; /* in its bucket */
	enum neigh_state state;
	struct neigh_key key;
	uid_t user;
	bool privileged;            /* the user has no quota */
	uint8_t mac[ETHER_MAC_LEN]; /* known in REACHABLE and PROBING; in INCOMPLETE an earlier one
				       if `remembered` */
	bool remembered;            /* the address has been resolved to `mac` before */
	bool used_again;            /* the host has used the entry after the resolution of `mac` */
	/* The entry has a place for proven ones: a new entry of its user replaces it last, or when
	 * it was idle for NEIGH_PROVEN_IDLE_NS. */
	bool proven;
	int port; /* uplink by which the MAC answered; -1 = unknown */
	/* In PROBING: another station claims the address. neigh.c accepts the claim if the station
	 * with the known MAC does not answer. */
	bool contested;
	uint8_t claimed_mac[ETHER_MAC_LEN];
	int claimed_port;
	uint64_t quiet_until;  /* neigh.c ignores claims of others until then, ns */
	uint64_t answered_at;  /* last answer of the station with `mac` itself, ns; 0 = none */
	uint64_t silent_until; /* the station counts as gone until then, ns (neigh_probe_station) */
	struct host_address from; /* the host's address from which key.ip is on-link */
	uint32_t tries;
	uint64_t due;  /* ns; in INCOMPLETE and PROBING: the next try; in REACHABLE: end of life */
	uint64_t used; /* ns; in INCOMPLETE: its start; else the last use */
	struct neigh_waiter_list waiters, persistent; /* `persistent`: neigh_resolve_persistently */
};
LIST_HEAD(neigh_entry_list, neigh_entry);

struct neigh_table {
	struct neigh_entry entries[NEIGH_ENTRIES];
	struct neigh_entry_list buckets[NEIGH_BUCKETS];
	uint32_t n_incomplete, n_probing; /* entries in these states */
};

/* Returns NULL if the address has no entry. */
struct neigh_entry *neigh_table_find(struct neigh_table *t, const struct neigh_key *key);
/* Iterates over the entries of an address in a VLAN, of all uplinks and resolvers: returns the
 * entry after e, or the first one if e is NULL; NULL at the end. */
struct neigh_entry *neigh_table_next(struct neigh_table *t, const uint8_t ip[16], uint16_t vlan,
				     const struct neigh_entry *e);
/*
 * Returns the entry that a new one of that user and state (INCOMPLETE or REACHABLE) replaces; it
 * may be a free one. NULL: the new entry may replace none. Unless the entry is free, the caller
 * frees it with neigh_table_free.
 */
struct neigh_entry *neigh_table_victim(struct neigh_table *t, uint64_t now, uid_t user,
				       enum neigh_state state);
/* Call it when the host uses an entry that is already resolved. The first such use makes the entry
 * proven if a place is left. */
void neigh_table_use(struct neigh_table *t, struct neigh_entry *e, uint64_t now);
/* Sets the MAC of an entry. If it differs from the last one, the entry is not proven any more. */
void neigh_table_set_mac(struct neigh_entry *e, const uint8_t mac[ETHER_MAC_LEN]);
/* Makes a free entry one in INCOMPLETE or REACHABLE. Members that do not follow from the arguments
 * become 0, except `port`, which becomes -1. */
void neigh_table_fill(struct neigh_table *t, struct neigh_entry *e, const struct neigh_key *key,
		      uid_t user, enum neigh_state state);
void neigh_table_set_state(struct neigh_table *t, struct neigh_entry *e, enum neigh_state state);
/* Frees an entry, which has no waiters. */
void neigh_table_free(struct neigh_table *t, struct neigh_entry *e);

#endif
