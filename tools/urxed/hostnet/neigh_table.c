/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/neigh_table.h"

#include <stddef.h>

#include "urxed/session/quota.h"

/* Needs no secret hash. Stations can choose addresses that share one bucket, but a search of that
 * bucket costs no more than one of the whole table. */
static struct neigh_entry_list *find_bucket(struct neigh_table *t, const uint8_t ip[16],
					    uint16_t vlan)
{
	uint32_t sum = vlan;

	for (int i = 0; i < 16; i++)
		sum = sum * 31 + ip[i];
	return &t->buckets[sum % NEIGH_BUCKETS];
}

struct neigh_entry *neigh_table_next(struct neigh_table *t, const uint8_t ip[16], uint16_t vlan,
				     const struct neigh_entry *e)
{
	struct neigh_entry *next = e ? LIST_NEXT(e, link) : LIST_FIRST(find_bucket(t, ip, vlan));

	while (next && (next->key.vlan != vlan || memcmp(next->key.ip, ip, sizeof(next->key.ip))))
		next = LIST_NEXT(next, link);
	return next;
}

struct neigh_entry *neigh_table_find(struct neigh_table *t, const struct neigh_key *key)
{
	struct neigh_entry *e = NULL;

	while ((e = neigh_table_next(t, key->ip, key->vlan, e)))
		if (e->key.uplink == key->uplink && e->key.resolver == key->resolver)
			break;
	return e;
}

/* Results of a scan of the whole table, either over the entries in INCOMPLETE, or over those in
 * REACHABLE and PROBING. */
struct survey {
	struct neigh_entry *own;        /* the user's oldest entry */
	struct neigh_entry *privileged; /* the oldest entry of users without quota */
	struct neigh_entry *any;        /* the oldest entry */
	uint32_t n_own, n;
};

static void note_older(struct neigh_entry **oldest, struct neigh_entry *e)
{
	if (!*oldest || e->used < (*oldest)->used)
		*oldest = e;
}

static void count_entry(struct survey *s, const struct neigh_entry *e, uid_t user)
{
	s->n++;
	s->n_own += e->user == user;
}

static void note_entry(struct survey *s, struct neigh_entry *e, uid_t user)
{
	count_entry(s, e, user);
	note_older(&s->any, e);
	if (e->user == user)
		note_older(&s->own, e);
	if (e->privileged)
		note_older(&s->privileged, e);
}

static struct neigh_entry *choose_victim(const struct survey *s)
{
	if (s->own)
		return s->own;
	return s->privileged ? s->privileged : s->any;
}

/* --- Proven entries */

/* Returns the user's least recently used entry of that state, and `proven` or not; NULL: none. */
static struct neigh_entry *find_oldest(struct neigh_table *t, uid_t user, enum neigh_state state,
				       bool proven)
{
	struct neigh_entry *oldest = NULL, *e;

	for (e = t->entries; e < t->entries + NEIGH_ENTRIES; e++)
		if (e->state == state && e->user == user && e->proven == proven)
			note_older(&oldest, e);
	return oldest;
}

/* Numbers of places for proven entries (neigh_table.h). */
struct places {
	uint32_t all, same_mac;
};

/* Returns how many places are left for proven entries of e's user, and for those with e's MAC. */
static struct places count_places(const struct neigh_table *t, const struct neigh_entry *e)
{
	struct places taken = {0}, most;
	uint32_t others = 0;

	for (const struct neigh_entry *i = t->entries; i < t->entries + NEIGH_ENTRIES; i++) {
		if (i->state == NEIGH_FREE)
			continue;
		if (i->user != e->user) {
			others++;
		} else if (i->proven) {
			taken.all++;
			taken.same_mac += ether_same(i->mac, e->mac);
		}
	}
	most.all = (NEIGH_ENTRIES - others) / 4;
	most.same_mac = (most.all + 1) / 2;
	return (struct places){
		.all = most.all > taken.all ? most.all - taken.all : 0,
		.same_mac = most.same_mac > taken.same_mac ? most.same_mac - taken.same_mac : 0,
	};
}

/* Scans all 1,024 entries, but only at the second use of an entry's MAC. */
void neigh_table_use(struct neigh_table *t, struct neigh_entry *e, uint64_t now)
{
	struct places left;

	e->used = now;
	if (e->used_again)
		return;
	e->used_again = true;
	left = count_places(t, e);
	e->proven = left.all && left.same_mac;
}

/* Returns the user's entry in REACHABLE or PROBING that a new entry replaces; NULL: none. The loop
 * makes each entry proven at most once, so it costs little per new entry. */
static struct neigh_entry *choose_own(struct neigh_table *t, uint64_t now, uid_t user)
{
	struct neigh_entry *e, *proven;

	while ((e = find_oldest(t, user, NEIGH_REACHABLE, false))) {
		const struct places left = count_places(t, e);

		if (!e->used_again || !left.same_mac)
			return e;
		if (!left.all) {
			proven = find_oldest(t, user, NEIGH_REACHABLE, true);
			return proven && proven->used + NEIGH_PROVEN_IDLE_NS <= now ? proven : e;
		}
		e->proven = true;
	}
	/* Also replaces unproven entries in PROBING, because any station can put them there by
	 * claims. */
	e = find_oldest(t, user, NEIGH_PROBING, false);
	return e ? e : find_oldest(t, user, NEIGH_REACHABLE, true);
}

/* Scans all 1,024 entries for each new entry, which takes less time than the solicitation, or the
 * request to the kernel, that a new entry causes. */
struct neigh_entry *neigh_table_victim(struct neigh_table *t, uint64_t now, uid_t user,
				       enum neigh_state state)
{
	struct survey asking = {0}, settled = {0};
	struct neigh_entry *free = NULL, *e;
	bool allowed;
	uint32_t own;

	for (e = t->entries; e < t->entries + NEIGH_ENTRIES; e++) {
		if (e->state == NEIGH_FREE)
			free = free ? free : e;
		else if (e->state == NEIGH_INCOMPLETE)
			note_entry(&asking, e, user);
		else if (e->state == NEIGH_REACHABLE)
			note_entry(&settled, e, user);
		else
			count_entry(&settled, e, user);
	}
	if (state == NEIGH_INCOMPLETE &&
	    (asking.n >= NEIGH_INCOMPLETE_MAX ||
	     !quota_allows(user, asking.n_own, asking.n, NEIGH_INCOMPLETE_MAX)))
		return choose_victim(&asking);
	own = asking.n_own + settled.n_own;
	allowed = quota_allows(user, own, asking.n + settled.n, NEIGH_ENTRIES);
	if (free && allowed)
		return free;
	settled.own = choose_own(t, now, user);
	if (settled.own || allowed || !own)
		return choose_victim(&settled);
	/* The user has no entries but those in INCOMPLETE, so one of these is replaced. */
	return asking.own;
}

void neigh_table_set_mac(struct neigh_entry *e, const uint8_t mac[ETHER_MAC_LEN])
{
	if (ether_same(e->mac, mac))
		return;
	memcpy(e->mac, mac, sizeof(e->mac));
	e->used_again = false;
	e->proven = false;
}

void neigh_table_set_state(struct neigh_table *t, struct neigh_entry *e, enum neigh_state state)
{
	t->n_incomplete += state == NEIGH_INCOMPLETE;
	t->n_incomplete -= e->state == NEIGH_INCOMPLETE;
	t->n_probing += state == NEIGH_PROBING;
	t->n_probing -= e->state == NEIGH_PROBING;
	e->state = state;
}

void neigh_table_fill(struct neigh_table *t, struct neigh_entry *e, const struct neigh_key *key,
		      uid_t user, enum neigh_state state)
{
	*e = (struct neigh_entry){
		.key = *key, .user = user, .privileged = !quota_applies(user), .port = -1};
	neigh_table_set_state(t, e, state);
	LIST_INSERT_HEAD(find_bucket(t, key->ip, key->vlan), e, link);
}

void neigh_table_free(struct neigh_table *t, struct neigh_entry *e)
{
	neigh_table_set_state(t, e, NEIGH_FREE);
	LIST_REMOVE(e, link);
}
