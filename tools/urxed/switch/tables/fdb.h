/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The forwarding database: which port of the switch leads to a MAC in a VLAN.
 *
 * The switch learns entries from source MACs per VLAN; they age out 300 s after the last frame from
 * the MAC (IEEE 802.1Q, 8.8.3). A MAC may be pinned to ports, and then only these ports may send
 * from it. If it is pinned to several, as for a virtual machine that migrates, the port that sent
 * last leads to it. Each port has an equal share of the table, so no port can fill the table for
 * others.
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
#define FDB_MOVED_NS 1000000000ull /* as fdb_pin_unknown says */
#define FDB_SWEEP_NS 1000000000ull /* least time between searches of a port for aged entries */

/* The VLAN in the key of a MAC that is pinned in all VLANs. */
#define FDB_ANY_VLAN 0xffff

struct fdb_key {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t vlan; /* VLAN ID, 0 = none, or FDB_ANY_VLAN */
};

struct fdb_entry {
	struct fdb_key key;
	uint32_t port; /* the port that leads to the MAC */
	uint32_t pins; /* bit mask of the ports to which the MAC is pinned; 0 = learned */
	uint64_t seen; /* time of the last frame from the MAC, ns */
	/* Set by fdb_pin_unknown: bit mask of the ports of `wire` that led to the MAC before, and
	 * the time of the pin, ns. */
	uint32_t former;
	uint64_t pinned_at;
	bool stays; /* set by fdb_give_back: silence does not mean that the station has moved */
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
	uint32_t pinned[FDB_PORTS]; /* number of MACs whose first pin is to the port */
	bool any_vlan;              /* some MAC is pinned in all VLANs */
	uint64_t swept[FDB_PORTS];  /* time of the last search of each port for aged entries, ns */
};

/* Returns 0, or a negative errno value, after which the caller has nothing to close. */
int fdb_open(struct fdb *f);
/* Frees the tables; accepts a zeroed fdb. */
void fdb_close(struct fdb *f);

/*
 * Pins a MAC to a port: only ports to which the MAC is pinned may send from it. The port of a MAC's
 * first pin may from then on send only from pinned MACs. A second call for a MAC pins it to a
 * further port, which may have other stations, too. Returns 0; -EEXIST: the MAC is pinned to that
 * port already, or learned; -ENOSPC: the port's share is full; -EINVAL: no station can have the
 * MAC.
 */
int fdb_pin(struct fdb *f, const struct fdb_key *key, uint32_t port);
/*
 * Pins a MAC in all VLANs if no port leads to it, and forgets where it was before. `wire`: bit mask
 * of the ports to other hosts. If the MAC was silent there for FDB_MOVED_NS, its station may have
 * moved, as a virtual machine that migrates, so the MAC counts as unknown. Returns -EEXIST if the
 * MAC is pinned, or is still known at some port; otherwise as fdb_pin. If the station
 * turns out not to have moved, fdb_give_back ends the pin.
 */
int fdb_pin_unknown(struct fdb *f, uint64_t now, uint32_t wire, const uint8_t mac[ETHER_MAC_LEN],
		    uint32_t port);

/*
 * Call it for a frame from a MAC that the port may not send from. If the MAC was at this port
 * before fdb_pin_unknown pinned it to another one, less than FDB_AGE_NS ago, its station has not
 * moved. Then this port leads to the MAC again, and fdb_pin_unknown does not take the MAC until it
 * is aged. Returns the port of the former pin; otherwise -1. Until fdb_forget_port, that port may
 * send only from other MACs that are pinned to it.
 */
int fdb_give_back(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port);

/*
 * Returns whether a port may send from a MAC. It may not if no station can have the MAC, if the MAC
 * is pinned to other ports only, or if the MAC is not pinned, but the port is the first pin of
 * others.
 */
bool fdb_may_send(const struct fdb *f, const struct fdb_key *key, uint32_t port);
/* Learns the port of the source MAC of a frame that fdb_may_send allows. Returns 0; -ENOSPC: the
 * port's share of the table is full, so no port leads to the MAC now. */
int fdb_learn(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port);
/* Removes all MACs to which the port leads, learned and pinned ones. */
void fdb_forget_port(struct fdb *f, uint32_t port);
/* Returns the port that leads to a MAC; -1: none is known. */
int fdb_find(const struct fdb *f, uint64_t now, const struct fdb_key *key);

/*
 * Parses "MAC=PORT" (any VLAN) or "MAC@VLAN=PORT", MAC as 52:54:00:12:34:56. Sets *key, and *port
 * to the text of PORT. Returns 0, or -EINVAL if the text is malformed or no station can have the
 * MAC.
 */
int fdb_parse(const char *text, struct fdb_key *key, const char **port);

#endif
