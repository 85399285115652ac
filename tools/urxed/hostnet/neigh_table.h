/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The entries of neigh.h: MACs of addresses, and addresses under resolution.
 *
 * An entry belongs to the user for whom it was made; entries for answers to other hosts belong
 * to NEIGH_PEERS. A user has a quota (quota.h) of all entries and one of those that wait for an
 * answer. If a quota is used up, or the table is full, a new entry replaces an older one, oldest
 * first, of the same user if possible. So no user, and no neighbour, displaces the entries of
 * others.
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

/* Owner of the entries for answers to other hosts; quotas apply to it as to a user. */
#define NEIGH_PEERS ((uid_t)-1)

enum neigh_state {
	NEIGH_FREE,
	NEIGH_INCOMPLETE, /* all stations are solicited, or the kernel resolves */
	NEIGH_REACHABLE,  /* the MAC has been confirmed before `due` */
	NEIGH_PROBING,    /* the station with the known MAC is solicited again */
};

/*
 * The resolver of an address. The table may have an address twice: once for each resolver, if the
 * host has addresses both with and without the kernel.
 */
enum neigh_resolver { NEIGH_BY_DAEMON, NEIGH_BY_KERNEL };

struct neigh_key {
	uint8_t ip[16];
	uint16_t vlan; /* VLAN ID; 0 = none */
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
	uint8_t mac[ETHER_MAC_LEN]; /* KNOWN, PROBING; ASKING: of an earlier time if `remembered` */
	bool remembered;            /* the address has been resolved to `mac` before */
	int port;                   /* from which the MAC answered; -1 = unknown */
	/* PROBING: another station claims the address; the claim counts if the known MAC is silent.
	 */
	bool contested;
	uint8_t claimed_mac[ETHER_MAC_LEN];
	int claimed_port;
	uint64_t quiet_until;     /* ns; claims of others are ignored until then */
	struct host_address from; /* this host's address in its subnet */
	int ifindex;              /* ASKING by the kernel: on this interface */
	uint32_t tries;
	uint64_t due;  /* ns; ASKING, PROBING: of the next try; KNOWN: end of life */
	uint64_t used; /* ns; ASKING: when it began; else of the last use */
	struct neigh_waiter_list waiters;
};
LIST_HEAD(neigh_entry_list, neigh_entry);

struct neigh_table {
	struct neigh_entry entries[NEIGH_ENTRIES];
	struct neigh_entry_list buckets[NEIGH_BUCKETS];
	uint32_t n_incomplete; /* entries in state NEIGH_INCOMPLETE */
};

/* NULL: the address has no entry. */
struct neigh_entry *neigh_table_find(struct neigh_table *t, const struct neigh_key *key);
/*
 * Returns the entry that a new one of that user in that state (ASKING or KNOWN) has to replace; it
 * may be free. NULL: all entries wait for answers. The caller frees the entry with
 * neigh_table_free, unless it is free.
 */
struct neigh_entry *neigh_table_victim(struct neigh_table *t, uid_t user, enum neigh_state state);
/* Makes a free entry one in ASKING or KNOWN; its other members are 0. */
void neigh_table_fill(struct neigh_table *t, struct neigh_entry *e, const struct neigh_key *key,
		      uid_t user, enum neigh_state state);
void neigh_table_set_state(struct neigh_table *t, struct neigh_entry *e, enum neigh_state state);
/* The entry has no waiters. */
void neigh_table_free(struct neigh_table *t, struct neigh_entry *e);

#endif
