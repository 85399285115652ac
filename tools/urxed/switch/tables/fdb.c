/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/tables/fdb.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "urxed/switch/tables/dpdk_hash.h"

int fdb_open(struct fdb *f)
{
	int rc = hash_create("fdb", FDB_ENTRIES, sizeof(struct fdb_key), &f->by_key);

	if (rc)
		return rc;
	f->all = calloc(FDB_ENTRIES, sizeof(*f->all));
	if (!f->all) {
		fdb_close(f);
		return -ENOMEM;
	}
	for (uint32_t i = FDB_ENTRIES; i-- > 0;)
		LIST_INSERT_HEAD(&f->unused, &f->all[i], link);
	return 0;
}

void fdb_close(struct fdb *f)
{
	hash_destroy(f->by_key);
	free(f->all);
	*f = (struct fdb){0};
}

static struct fdb_entry *find_fdb_entry_in_vlan(const struct fdb *f, const struct fdb_key *key)
{
	int64_t i = hash_get(f->by_key, key);

	return i < 0 ? NULL : &f->all[i];
}

static struct fdb_entry *find_fdb_entry(const struct fdb *f, const struct fdb_key *key)
{
	struct fdb_entry *e = find_fdb_entry_in_vlan(f, key);
	struct fdb_key any = *key;

	any.vlan = FDB_ANY_VLAN;
	return e || !f->any_vlan ? e : find_fdb_entry_in_vlan(f, &any);
}

static bool is_aged(const struct fdb_entry *e, uint64_t now)
{
	return !e->pins && now - e->seen >= FDB_AGE_NS;
}

static void remove_fdb_entry(struct fdb *f, struct fdb_entry *e)
{
	hash_remove(f->by_key, &e->key);
	f->n[e->port]--;
	LIST_REMOVE(e, link);
	LIST_INSERT_HEAD(&f->unused, e, link);
}

static void remove_aged_entries(struct fdb *f, uint64_t now, uint32_t port)
{
	struct fdb_entry *e = LIST_FIRST(&f->ports[port]), *next;

	for (; e; e = next) {
		next = LIST_NEXT(e, link);
		if (is_aged(e, now))
			remove_fdb_entry(f, e);
	}
}

static struct fdb_entry *add_fdb_entry(struct fdb *f, const struct fdb_key *key, uint32_t port)
{
	struct fdb_entry *e = f->n[port] < FDB_PER_PORT ? LIST_FIRST(&f->unused) : NULL;

	if (!e || hash_set(f->by_key, key, (uint32_t)(e - f->all)))
		return NULL;
	LIST_REMOVE(e, link);
	LIST_INSERT_HEAD(&f->ports[port], e, link);
	f->n[port]++;
	e->key = *key;
	e->port = port;
	e->pins = 0;
	e->former = 0;
	e->stays = false;
	return e;
}

int fdb_pin(struct fdb *f, const struct fdb_key *key, uint32_t port)
{
	struct fdb_entry *e;

	if (!ether_is_station(key->mac))
		return -EINVAL;
	e = find_fdb_entry_in_vlan(f, key);
	if (e && (!e->pins || e->pins & 1u << port))
		return -EEXIST;
	if (!e) {
		e = add_fdb_entry(f, key, port);
		if (!e)
			return -ENOSPC;
		f->pinned[port]++;
	}
	e->pins |= 1u << port;
	f->any_vlan |= key->vlan == FDB_ANY_VLAN;
	return 0;
}

/* Returns the next entry after e, of any VLAN, in which the port leads to this MAC; e NULL: the
 * first one. */
static struct fdb_entry *next_with_mac(const struct fdb *f, const uint8_t mac[ETHER_MAC_LEN],
				       uint32_t port, const struct fdb_entry *e)
{
	struct fdb_entry *next = e ? LIST_NEXT(e, link) : LIST_FIRST(&f->ports[port]);

	while (next && !ether_same(next->key.mac, mac))
		next = LIST_NEXT(next, link);
	return next;
}

/* Whether some port leads to the MAC in any VLAN; `wire` as for fdb_pin_unknown. */
static bool is_known(const struct fdb *f, uint64_t now, uint32_t wire,
		     const uint8_t mac[ETHER_MAC_LEN])
{
	for (uint32_t port = 0; port < FDB_PORTS; port++) {
		const bool may_move = wire >> port & 1;
		const struct fdb_entry *e = NULL;

		while ((e = next_with_mac(f, mac, port, e)))
			if (e->pins ||
			    now - e->seen < (may_move && !e->stays ? FDB_MOVED_NS : FDB_AGE_NS))
				return true;
	}
	return false;
}

/* Removes the MAC in all VLANs. Returns the bit mask of the ports that led to it. */
static uint32_t forget_mac(struct fdb *f, const uint8_t mac[ETHER_MAC_LEN])
{
	struct fdb_entry *e;
	uint32_t ports = 0;

	for (uint32_t port = 0; port < FDB_PORTS; port++)
		while ((e = next_with_mac(f, mac, port, NULL))) {
			remove_fdb_entry(f, e);
			ports |= 1u << port;
		}
	return ports;
}

int fdb_pin_unknown(struct fdb *f, uint64_t now, uint32_t wire, const uint8_t mac[ETHER_MAC_LEN],
		    uint32_t port)
{
	struct fdb_key key = {.vlan = FDB_ANY_VLAN};
	struct fdb_entry *e;
	uint32_t former;
	int rc;

	if (is_known(f, now, wire, mac))
		return -EEXIST;
	former = forget_mac(f, mac) & wire;
	memcpy(key.mac, mac, ETHER_MAC_LEN);
	rc = fdb_pin(f, &key, port);
	if (rc)
		return rc;
	e = find_fdb_entry_in_vlan(f, &key);
	e->former = former;
	e->pinned_at = now;
	return 0;
}

bool fdb_may_send(const struct fdb *f, const struct fdb_key *key, uint32_t port)
{
	const struct fdb_entry *e = find_fdb_entry(f, key);

	if (!ether_is_station(key->mac))
		return false;
	if (e && e->pins)
		return e->pins & 1u << port;
	return !f->pinned[port];
}

/* Makes another port lead to a pinned MAC, even if the port's share is full: stations cannot fill
 * the table that way, because only the daemon adds pinned MACs. */
static void move_pinned_entry(struct fdb *f, struct fdb_entry *e, uint32_t port)
{
	f->n[e->port]--;
	LIST_REMOVE(e, link);
	LIST_INSERT_HEAD(&f->ports[port], e, link);
	f->n[port]++;
	e->port = port;
}

/* The MAC of the former pin still counts in f->pinned, so the pin's port may send from pinned MACs
 * only. */
int fdb_give_back(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port)
{
	struct fdb_entry *e = find_fdb_entry(f, key);
	int pinned_to;

	if (!e || !(e->former >> port & 1) || now - e->pinned_at >= FDB_AGE_NS)
		return -1;
	pinned_to = (int)e->port;
	move_pinned_entry(f, e, port);
	e->pins = e->former = 0;
	e->seen = now;
	e->stays = true;
	return pinned_to;
}

int fdb_learn(struct fdb *f, uint64_t now, const struct fdb_key *key, uint32_t port)
{
	struct fdb_entry *e = find_fdb_entry(f, key);

	/* The station has moved to this port. If the port has no room for the MAC, frames to the
	 * MAC go to all ports. */
	if (e && !e->pins && e->port != port) {
		remove_fdb_entry(f, e);
		e = NULL;
	}
	if (!e && f->n[port] >= FDB_PER_PORT && now - f->swept[port] >= FDB_SWEEP_NS) {
		f->swept[port] = now;
		remove_aged_entries(f, now, port);
	}
	if (!e)
		e = add_fdb_entry(f, key, port);
	if (!e)
		return -ENOSPC;
	if (e->port != port)
		move_pinned_entry(f, e, port);
	e->seen = now;
	return 0;
}

void fdb_forget_port(struct fdb *f, uint32_t port)
{
	struct fdb_entry *e;

	while ((e = LIST_FIRST(&f->ports[port])))
		remove_fdb_entry(f, e);
	f->pinned[port] = 0;
}

int fdb_find(const struct fdb *f, uint64_t now, const struct fdb_key *key)
{
	const struct fdb_entry *e = find_fdb_entry(f, key);

	return e && !is_aged(e, now) ? (int)e->port : -1;
}
