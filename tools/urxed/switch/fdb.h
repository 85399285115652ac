/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The forwarding database: which port of the switch leads to a MAC in a VLAN.
 *
 * Learned from source MACs, each VLAN for itself, and forgotten after 300 s
 * (IEEE 802.1Q, 8.8.3) in which the MAC sent nothing. A pinned MAC is a port's own:
 * no other port sends from it, and nothing moves it. Ports are numbers below
 * FDB_PORTS; each has its share of the table, so that none fills it for others.
 */
#ifndef URXE_URXED_SWITCH_FDB_H
#define URXE_URXED_SWITCH_FDB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/ether.h"

#define FDB_PORTS    8
#define FDB_PER_PORT 512
#define FDB_ENTRIES  (FDB_PORTS * FDB_PER_PORT)
#define FDB_AGE_NS   300000000000ull
#define FDB_SWEEP_NS 1000000000ull /* between two looks for what is too old, in a full table */

/* A pinned MAC may be one in all VLANs. */
#define FDB_ANY_VLAN 0xffff

struct fdb_key {
	uint8_t mac[ETHER_MAC_LEN];
	uint16_t vlan; /* ID, 0 = none, or FDB_ANY_VLAN */
};

struct fdb_entry {
	struct fdb_key key;
	uint32_t port;
	bool pinned;
	uint64_t seen; /* when it last sent */
	LIST_ENTRY(fdb_entry) link;
};
LIST_HEAD(fdb_list, fdb_entry);

struct hash;

struct fdb {
	struct hash *by_key;
	struct fdb_entry *all;
	struct fdb_list unused;
	struct fdb_list ports[FDB_PORTS];
	uint32_t n[FDB_PORTS];      /* entries of each */
	uint32_t pinned[FDB_PORTS]; /* of these */
	bool any_vlan;              /* some are pinned in all VLANs */
	uint64_t swept;
};

/* 0, or a negative errno value; then nothing is left. */
int fdb_open(struct fdb *f);
/* Also for one that was never opened, all 0. */
void fdb_close(struct fdb *f);

/* -EEXIST: it is pinned already; -ENOSPC: the port has its share; -EINVAL: a group's MAC. */
int fdb_pin(struct fdb *f, const struct fdb_key *key, uint32_t port);

/* Whether a port may send from a MAC: not where it is another's, nor where the port has its own. */
bool fdb_may_send(const struct fdb *f, const struct fdb_key *key, uint32_t port);
/* A MAC that may send from a port has. -ENOSPC: the port has its share, and it was not learned. */
int fdb_learn(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port);
/* The port that leads to a MAC; -1: not known. */
int fdb_find(const struct fdb *f, uint64_t now, const struct fdb_key *key);

/*
 * "MAC=PORT" or "MAC@VLAN=PORT", MAC as 52:54:00:12:34:56: sets *key, and *port to what
 * stands for the port. -EINVAL: it is not one.
 */
int fdb_parse(const char *text, struct fdb_key *key, const char **port);

#endif
