/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The forwarding database: which port of the switch leads to a MAC in a VLAN.
 *
 * Entries are learned from source MACs per VLAN and age out after 300 s without a frame from the
 * MAC (IEEE 802.1Q, 8.8.3). Only the ports to which a MAC is pinned may send from it. If a MAC is
 * pinned to several, such as for a virtual machine that migrates, the port that sent last leads to
 * it. Each port has an equal share of the table, so no port can fill the table for others.
 */
#ifndef URXE_URXED_SWITCH_TABLES_FDB_H
#define URXE_URXED_SWITCH_TABLES_FDB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/ether.h"

#define FDB_PORTS    32
#define FDB_PER_PORT 512
#define FDB_ENTRIES  (FDB_PORTS * FDB_PER_PORT)
#define FDB_AGE_NS   300000000000ull
#define FDB_MOVED_NS 1000000000ull /* fdb_pin_unknown */
#define FDB_SWEEP_NS 1000000000ull /* minimum interval of searches of a port for aged entries */

/* The VLAN of a MAC that is pinned in all VLANs. */
#define FDB_ANY_VLAN 0xffff

struct fdb_key {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t vlan; /* VLAN ID, 0 = none, or FDB_ANY_VLAN */
};

struct fdb_entry {
	struct fdb_key key;
	uint32_t port; /* the one that leads to the MAC */
	uint32_t pins; /* bit mask of the ports to which the MAC is pinned; 0 = learned */
	uint64_t seen; /* time of the last frame from the MAC, ns */
	/* By fdb_pin_unknown: the ports that led to the MAC before, and the time of the pin, ns. */
	uint32_t former;
	uint64_t pinned_at;
	bool stays; /* by fdb_give_back: silence does not show that the station has moved */
	LIST_ENTRY(fdb_entry) link;
};
LIST_HEAD(fdb_list, fdb_entry);

struct hash;

struct fdb {
	struct hash *by_key;
	struct fdb_entry *all;
	struct fdb_list unused;
	struct fdb_list ports[FDB_PORTS];
	uint32_t n[FDB_PORTS];      /* entries of each port */
	uint32_t pinned[FDB_PORTS]; /* for each port, number of MACs that were pinned to it first */
	bool any_vlan;              /* some MAC is pinned in all VLANs */
	uint64_t swept[FDB_PORTS];  /* time of the last search of each port for aged entries, ns */
};

/* Returns 0, or a negative errno value; then nothing needs to be closed. */
int fdb_open(struct fdb *f);
/* Frees the tables; allowed for a zeroed fdb. */
void fdb_close(struct fdb *f);

/*
 * Pins a MAC to a port: only ports of its pins may send from the MAC. The port of the MAC's first
 * pin may then send from pinned MACs only. A second call for a MAC pins it to a further port, which
 * may have other stations, too. Returns 0; -EEXIST: already pinned to that port, or learned;
 * -ENOSPC: the port's share is full; -EINVAL: no station can have the MAC.
 */
int fdb_pin(struct fdb *f, const struct fdb_key *key, uint32_t port);
/*
 * Pins a MAC in all VLANs, if no port has the MAC, and forgets where the MAC was before. `wire`:
 * bit mask of the ports to other hosts. A station that was silent there for FDB_MOVED_NS may have
 * moved, such as a virtual machine that migrates. -EEXIST: the MAC is pinned, or was learned at
 * some port and is not aged; otherwise as fdb_pin. If the station has not moved, fdb_give_back ends
 * the pin.
 */
int fdb_pin_unknown(struct fdb *f, uint64_t now, uint32_t wire, const uint8_t mac[ETHER_MAC_LEN],
		    uint32_t port);

/*
 * Handles a frame from a MAC that the port may not send from. Was the MAC at this port before
 * fdb_pin_unknown pinned it elsewhere, less than FDB_AGE_NS ago? Then the station has not moved:
 * its port leads to the MAC again, and fdb_pin_unknown does not take the MAC until it is aged.
 * Returns the port of the former pin, which may send from no MAC now until fdb_forget_port; -1:
 * none.
 */
int fdb_give_back(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port);

/*
 * May a port send from a MAC? Not from one that no station can have, nor from one that is pinned to
 * other ports only. A port that is the first one of pinned MACs may send from no other MAC.
 */
bool fdb_may_send(const struct fdb *f, const struct fdb_key *key, uint32_t port);
/*
 * Learns the port of the source MAC of an allowed frame. Returns 0; -ENOSPC: the port's share of
 * the table is full, so no port leads to the MAC now.
 */
int fdb_learn(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port);
/* Removes all MACs to which the port leads, learned and pinned ones. */
void fdb_forget_port(struct fdb *f, uint32_t port);
/* Returns the port that leads to a MAC; -1 = unknown. */
int fdb_find(const struct fdb *f, uint64_t now, const struct fdb_key *key);

/*
 * Parses "MAC=PORT" (any VLAN) or "MAC@VLAN=PORT", MAC as 52:54:00:12:34:56. Sets *key, and *port
 * to the text of PORT. Returns 0; -EINVAL: malformed, or no station can have the MAC.
 */
int fdb_parse(const char *text, struct fdb_key *key, const char **port);

#endif
