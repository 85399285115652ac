/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/neigh.h"

#include <errno.h>
#include <stddef.h>

#include "urxed/hostnet/arp_nd.h"
#include "urxed/hostnet/route.h"

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx)
{
	memset(n, 0, sizeof(*n));
	n->host = host;
	n->ops = ops;
	n->ctx = ctx;
	n->next_due = UINT64_MAX;
}

void neigh_fini(struct neigh *n)
{
	user_counts_free(&n->waiting);
}

/* --- Waiters */

static void stop_waiting(struct neigh *n, struct neigh_waiter *w)
{
	LIST_REMOVE(w, link);
	w->waits = false;
	user_counts_drop(&n->waiting, w->user);
}

static int start_waiting(struct neigh *n, struct neigh_entry *e, struct neigh_waiter *w)
{
	int rc = user_counts_take(&n->waiting, w->user, NEIGH_WAITERS_MAX);

	if (rc)
		return rc;
	w->waits = true;
	LIST_INSERT_HEAD(w->persistent ? &e->persistent : &e->waiters, w, link);
	return -EINPROGRESS;
}

void neigh_cancel(struct neigh *n, struct neigh_waiter *w)
{
	if (w->waits)
		stop_waiting(n, w);
}

/* --- Entries */

static void set_due(struct neigh *n, struct neigh_entry *e, uint64_t due)
{
	e->due = due;
	if (due < n->next_due)
		n->next_due = due;
}

static void lose_waiters(struct neigh *n, struct neigh_waiter_list *list)
{
	struct neigh_waiter *w;

	while ((w = LIST_FIRST(list))) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&n->lost, w, link);
	}
}

/* Frees an entry to make room for a new one. Its waiters get their answer from neigh_tick, because
 * the callers of make_entry expect no callback. */
static void displace_entry(struct neigh *n, struct neigh_entry *e)
{
	n->counters[NEIGH_COUNT_DISPLACED] += e->state == NEIGH_INCOMPLETE;
	lose_waiters(n, &e->waiters);
	lose_waiters(n, &e->persistent);
	neigh_table_free(&n->table, e);
}

/* Returns a new entry; NULL: it may displace no older one. */
static struct neigh_entry *make_entry(struct neigh *n, const struct neigh_key *key, uid_t user,
				      enum neigh_state state)
{
	struct neigh_entry *e = neigh_table_victim(&n->table, n->now, user, state);

	if (!e)
		return NULL;
	if (e->state != NEIGH_FREE)
		displace_entry(n, e);
	neigh_table_fill(&n->table, e, key, user, state);
	e->used = n->now;
	return e;
}

/* Records the router's MAC for a destination behind the router, so that neigh_knows recognises
 * frames of that destination, which arrive with the router's MAC. */
static void note_routed_peer(struct neigh *n, const struct neigh_waiter *w, const uint8_t *mac)
{
	struct neigh_key key = {.vlan = w->vlan, .uplink = w->uplink, .resolver = NEIGH_BY_KERNEL};
	struct neigh_entry *e;

	if (!memcmp(w->dgid, w->ip, sizeof(w->ip)))
		return;
	memcpy(key.ip, w->dgid, sizeof(key.ip));
	e = neigh_table_find(&n->table, &key);
	if (e)
		neigh_table_use(&n->table, e, n->now);
	else
		e = make_entry(n, &key, w->user, NEIGH_REACHABLE);
	if (e && e->state == NEIGH_REACHABLE)
		neigh_table_set_mac(e, mac);
}

static void answer_waiter(struct neigh *n, struct neigh_waiter *w, int status, const uint8_t *mac)
{
	struct vnic_next_hop hop = {.hop_limit = w->hop_limit};

	stop_waiting(n, w);
	if (mac) {
		memcpy(hop.mac, mac, sizeof(hop.mac));
		note_routed_peer(n, w, mac);
	}
	n->ops->answer(n->ctx, w, status, mac ? &hop : NULL);
}

static void answer_waiters(struct neigh *n, struct neigh_waiter_list *list, int status,
			   const uint8_t *mac)
{
	struct neigh_waiter *w;

	while ((w = LIST_FIRST(list)))
		answer_waiter(n, w, status, mac);
}

static void move_waiters(struct neigh_waiter_list *from, struct neigh_waiter_list *to)
{
	LIST_INIT(to);
	to->lh_first = LIST_FIRST(from);
	if (to->lh_first)
		to->lh_first->link.le_prev = &to->lh_first;
	LIST_INIT(from);
}

/* Takes all waiters from the entry before it answers them: each answer may make an entry of a peer
 * behind the router (note_routed_peer), which may displace this entry. */
static void answer_all(struct neigh *n, struct neigh_entry *e, const uint8_t *mac)
{
	struct neigh_waiter_list waiters, persistent;

	move_waiters(&e->waiters, &waiters);
	move_waiters(&e->persistent, &persistent);
	answer_waiters(n, &waiters, 0, mac);
	answer_waiters(n, &persistent, 0, mac);
}

static void drop_entry(struct neigh *n, struct neigh_entry *e, int status)
{
	answer_waiters(n, &e->waiters, status, NULL);
	answer_waiters(n, &e->persistent, status, NULL);
	neigh_table_free(&n->table, e);
}

/* Handles a neighbour that has not answered: waiters get -EHOSTUNREACH. The entry stays if it has
 * persistent waiters. */
static void fail_entry(struct neigh *n, struct neigh_entry *e)
{
	answer_waiters(n, &e->waiters, -EHOSTUNREACH, NULL);
	if (LIST_EMPTY(&e->persistent))
		neigh_table_free(&n->table, e);
}

static void note_answer(struct neigh *n, struct neigh_entry *e)
{
	e->answered_at = n->now;
	e->silent_until = 0;
}

static void enter_reachable(struct neigh *n, struct neigh_entry *e, const uint8_t *mac, int port)
{
	uint8_t copy[ETHER_MAC_LEN];

	memcpy(copy, mac, sizeof(copy));
	neigh_table_set_mac(e, copy);
	e->remembered = true;
	e->port = port;
	e->contested = false;
	e->used = n->now;
	e->due = n->now + NEIGH_LIFE_NS;
	neigh_table_set_state(&n->table, e, NEIGH_REACHABLE);
	answer_all(n, e, copy);
}

/* --- Probes of a known MAC */

static void send_probe(struct neigh *n, struct neigh_entry *e)
{
	e->tries++;
	set_due(n, e, n->now + NEIGH_PROBE_NS);
	neigh_send_solicitation(n, e, e->mac);
}

static void enter_probing(struct neigh *n, struct neigh_entry *e)
{
	e->tries = 0;
	neigh_table_set_state(&n->table, e, NEIGH_PROBING);
	send_probe(n, e);
}

static void note_claim(struct neigh_entry *e, const uint8_t *mac, int port)
{
	e->contested = true;
	memcpy(e->claimed_mac, mac, sizeof(e->claimed_mac));
	e->claimed_port = port;
}

/* Handles a confirmation of the known MAC: ends the probes, rejects another station's claim, and
 * begins the entry's life (NEIGH_LIFE_NS) anew. */
static void confirm_entry(struct neigh *n, struct neigh_entry *e, int port)
{
	if (e->contested) {
		n->counters[NEIGH_COUNT_REFUTED]++;
		e->quiet_until = n->now + NEIGH_QUIET_NS;
	}
	note_answer(n, e);
	enter_reachable(n, e, e->mac, port);
}

/* Handles another station's claim of a known neighbour's address. If the claim comes from the
 * neighbour's port, it replaces an earlier claim from another port. */
static void contest_entry(struct neigh *n, struct neigh_entry *e, const uint8_t *mac, int port)
{
	if (e->state == NEIGH_PROBING) {
		if (!e->contested || (port == e->port && e->claimed_port != e->port))
			note_claim(e, mac, port);
		return;
	}
	if (n->now < e->quiet_until)
		return;
	note_claim(e, mac, port);
	enter_probing(n, e);
}

/* --- Solicitations to all stations */

static void send_solicitation(struct neigh *n, struct neigh_entry *e)
{
	e->tries++;
	set_due(n, e, n->now + NEIGH_TRY_NS);
	neigh_send_solicitation(n, e, NULL);
}

static void enter_incomplete(struct neigh *n, struct neigh_entry *e)
{
	e->tries = 0;
	e->used = n->now;
	neigh_table_set_state(&n->table, e, NEIGH_INCOMPLETE);
	send_solicitation(n, e);
}

/* Handles a neighbour that has left all probes of its MAC unanswered: accepts the MAC that another
 * station has claimed; without a claim, solicits all stations. */
static void give_up_known_mac(struct neigh *n, struct neigh_entry *e)
{
	if (e->contested) {
		n->counters[NEIGH_COUNT_MOVED]++;
		enter_reachable(n, e, e->claimed_mac, e->claimed_port);
	} else {
		e->silent_until = n->now + NEIGH_QUIET_NS;
		enter_incomplete(n, e);
	}
}

/* --- Claims of stations */

static void learn_claim_of_entry(struct neigh *n, struct neigh_entry *e,
				 const struct neigh_ingress *ingress, const uint8_t *mac,
				 enum neigh_claim claim)
{
	if (e->state == NEIGH_INCOMPLETE) {
		if (claim == NEIGH_CLAIM_CONFIRMS)
			return;
		note_answer(n, e);
		enter_reachable(n, e, mac, ingress->uplink);
	} else if (!ether_same(e->mac, mac)) {
		if (claim == NEIGH_CLAIM_REPLACES)
			contest_entry(n, e, mac, ingress->uplink);
	} else if (e->state == NEIGH_PROBING || ingress->uplink == e->port) {
		confirm_entry(n, e, ingress->uplink);
	}
}

void neigh_learn_claim(struct neigh *n, const struct neigh_ingress *ingress, const uint8_t ip[16],
		       const uint8_t mac[ETHER_MAC_LEN], enum neigh_claim claim)
{
	struct neigh_entry *e = NULL;

	if (!ether_is_station(mac) || ether_same(mac, n->host->mac) ||
	    !address_pins_allow(&n->pins, ip, ingress->vlan, mac))
		return;
	/* A claim only changes existing entries, which this host has made. So claims cannot fill
	 * the table. */
	while ((e = neigh_table_next(&n->table, ip, ingress->vlan, e))) {
		if (ingress->uplink != e->key.uplink && !neigh_is_vm(n, ingress->uplink))
			continue;
		/* The kernel resolves this entry's address, so a claim counts only if it comes from
		 * the probed station. */
		if (e->key.resolver == NEIGH_BY_DAEMON)
			learn_claim_of_entry(n, e, ingress, mac, claim);
		else if (e->state == NEIGH_PROBING && ether_same(e->mac, mac))
			confirm_entry(n, e, ingress->uplink);
	}
}

/* --- Resolution */

/* As RFC 1112, 6.4 and RFC 2464, 7 say. */
static void multicast_mac(const uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN])
{
	if (ip_is_v4(ip)) {
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, ip[13] & 0x7f, ip[14], ip[15]}, 6);
		return;
	}
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, ip + 12, 4);
}

static bool is_multicast(const uint8_t ip[16])
{
	return ip[0] == 0xff || (ip_is_v4(ip) && ip[12] >> 4 == 0xe);
}

/* Returns true if the host's address may have neighbours. If virtual machines have ports, each
 * address may, even one without an uplink. */
static bool is_on_link(const struct neigh *n, const struct host_address *a)
{
	return a->uplink >= 0 || n->vm_mask;
}

/* Returns this host's address in dgid's subnet: the sender's own if it is there, else any other in
 * the same VLAN. NULL: there is none, so dgid is not on-link. */
static const struct host_address *
choose_source(const struct neigh *n, const struct host_address *own, const uint8_t dgid[16])
{
	const struct host *h = n->host;
	const struct host_address *a;

	if (is_on_link(n, own) && host_same_subnet(own->ip, dgid, own->prefix_len))
		return own;
	for (a = h->addresses; a < h->addresses + HOST_ADDRESSES; a++)
		if (a->valid && is_on_link(n, a) && a->vlan == own->vlan &&
		    ip_is_v4(a->ip) == ip_is_v4(dgid) &&
		    host_same_subnet(a->ip, dgid, a->prefix_len))
			return a;
	return NULL;
}

static struct neigh_key waiter_key(const struct neigh_waiter *w)
{
	struct neigh_key key = {.vlan = w->vlan,
				.uplink = w->uplink,
				.resolver = w->ifindex ? NEIGH_BY_KERNEL : NEIGH_BY_DAEMON};

	memcpy(key.ip, w->ip, sizeof(key.ip));
	return key;
}

/*
 * Resolves w->ip by ARP or ND, on the link of this host's address `from`. Returns as neigh_resolve.
 */
static int resolve_on_link(struct neigh *n, const struct host_address *from, struct neigh_waiter *w,
			   struct vnic_next_hop *hop)
{
	struct neigh_key key;
	struct neigh_entry *e;

	w->uplink = from->uplink;
	key = waiter_key(w);
	e = neigh_table_find(&n->table, &key);
	if (e && e->state == NEIGH_REACHABLE && n->now < e->due) {
		neigh_table_use(&n->table, e, n->now);
		memcpy(hop->mac, e->mac, sizeof(hop->mac));
		return 0;
	}
	if (!e) {
		e = make_entry(n, &key, w->user, NEIGH_INCOMPLETE);
		if (!e)
			return -EHOSTUNREACH;
		e->from = *from;
		enter_incomplete(n, e);
	} else if (e->state == NEIGH_REACHABLE) {
		/* Probes the last known station before it solicits all others (RFC 4861, 7.3.3). */
		neigh_table_use(&n->table, e, n->now);
		enter_probing(n, e);
	} else if (e->state == NEIGH_INCOMPLETE && LIST_EMPTY(&e->waiters)) {
		/* Persistent waiters may have used up tries, but w gets the full number. */
		e->tries = 0;
	}
	return start_waiting(n, e, w);
}

/*
 * Handles a MAC from the kernel, which believes any station's claim. So if the MAC differs from the
 * known one, neigh.c first probes the station with the known MAC. A permanent MAC needs no probe,
 * because no claim replaces it in the kernel. If the kernel names the MAC that neigh.c is probing,
 * the waiters get that MAC, but the probes go on: the kernel's entry may be old, so only the
 * station's own answer ends them.
 */
static void learn_kernel_mac(struct neigh *n, struct neigh_entry *e, const uint8_t *mac,
			     bool permanent)
{
	bool differs = !permanent && e->remembered && !ether_same(e->mac, mac);

	if (e->state == NEIGH_PROBING && !e->contested && !permanent && !differs)
		answer_all(n, e, mac);
	else if (!differs)
		enter_reachable(n, e, mac, e->from.uplink);
	else if (e->state != NEIGH_PROBING && n->now < e->quiet_until)
		enter_reachable(n, e, e->mac, e->port);
	else
		contest_entry(n, e, mac, e->from.uplink);
}

/*
 * Handles the kernel's MAC of w->ip, hop->mac. Returns 0 with the MAC to use in hop->mac. Returns
 * -EINPROGRESS if the kernel's MAC differs from the known one: w then waits while neigh.c probes
 * the station with the known MAC. Also returns errors of start_waiting.
 */
static int learn_kernel_answer(struct neigh *n, const struct host_address *from,
			       struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	const struct neigh_key key = waiter_key(w);
	struct neigh_entry *e = neigh_table_find(&n->table, &key);

	if (e)
		neigh_table_use(&n->table, e, n->now);
	else
		e = make_entry(n, &key, w->user, NEIGH_REACHABLE);
	if (!e)
		return 0;
	e->from = *from;
	learn_kernel_mac(n, e, hop->mac, w->permanent);
	if (e->state == NEIGH_PROBING && e->contested)
		return start_waiting(n, e, w);
	memcpy(hop->mac, e->mac, sizeof(hop->mac));
	note_routed_peer(n, w, hop->mac);
	return 0;
}

static int await_kernel(struct neigh *n, const struct host_address *from, struct neigh_waiter *w)
{
	const struct neigh_key key = waiter_key(w);
	struct neigh_entry *e = neigh_table_find(&n->table, &key);

	if (!e)
		e = make_entry(n, &key, w->user, NEIGH_INCOMPLETE);
	if (!e)
		return -EHOSTUNREACH;
	if (e->state == NEIGH_REACHABLE) {
		e->used = n->now;
		neigh_table_set_state(&n->table, e, NEIGH_INCOMPLETE);
	}
	e->from = *from;
	/* In NEIGH_PROBING the timer of the entry is that of the probes. */
	if (e->state == NEIGH_INCOMPLETE && LIST_EMPTY(&e->waiters))
		set_due(n, e, n->now + ROUTE_TIMEOUT_NS);
	return start_waiting(n, e, w);
}

/* Whether neigh.c itself resolves on-link addresses of the kernel, because the kernel cannot reach
 * virtual machines, and knows nothing of a bond. */
static bool resolves_on_link(const struct neigh *n)
{
	return n->vm_mask || n->bond_mask;
}

static int resolve_by_kernel(struct neigh *n, const struct host_address *own, bool v1,
			     struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	const uint8_t *pinned;
	int rc = route_find_hop(n->route, own, v1, w);

	if (rc)
		return rc;
	hop->hop_limit = w->hop_limit;
	pinned = address_pins_find(&n->pins, w->ip, w->vlan);
	if (pinned) {
		memcpy(hop->mac, pinned, sizeof(hop->mac));
		note_routed_peer(n, w, pinned);
		return 0;
	}
	/* The destination is on-link by the kernel's route, though not by the prefix of an address
	 * (as with DHCPv6). */
	if (resolves_on_link(n) && !memcmp(w->ip, w->dgid, sizeof(w->ip))) {
		w->ifindex = 0;
		return resolve_on_link(n, own, w, hop);
	}
	rc = route_find_mac(n->route, w, hop);
	if (rc == -EINPROGRESS)
		return await_kernel(n, own, w);
	return rc ?: learn_kernel_answer(n, own, w, hop);
}

/* Resolves a pinned on-link address without a solicitation. Returns false if the destination is not
 * pinned. */
static bool resolve_pinned(const struct neigh *n, const struct neigh_waiter *w,
			   struct vnic_next_hop *hop)
{
	const uint8_t *pinned = address_pins_find(&n->pins, w->dgid, w->vlan);

	if (pinned)
		memcpy(hop->mac, pinned, sizeof(hop->mac));
	return pinned;
}

static int resolve(struct neigh *n, uint8_t sgid_index, const uint8_t dgid[16],
		   struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	const struct host_address *own = host_address_by_gid(n->host, sgid_index), *from;

	*hop = (struct vnic_next_hop){0};
	if (!own)
		return -EINVAL;
	if (is_multicast(dgid)) {
		multicast_mac(dgid, hop->mac);
		return 0;
	}
	if (host_find_address(n->host, dgid)) {
		memcpy(hop->mac, n->host->mac, sizeof(hop->mac));
		return 0;
	}
	w->sgid_index = sgid_index;
	memcpy(w->sgid, own->ip, sizeof(w->sgid));
	memcpy(w->dgid, dgid, sizeof(w->dgid));
	memcpy(w->ip, dgid, sizeof(w->ip));
	w->vlan = own->vlan;
	w->uplink = own->uplink;
	from = choose_source(n, own, dgid);
	if (from && resolve_pinned(n, w, hop))
		return 0;
	if (n->route && own->kernel && !(from && resolves_on_link(n)))
		return resolve_by_kernel(n, own, sgid_index >= HOST_ADDRESSES, w, hop);
	return from ? resolve_on_link(n, from, w, hop) : -ENETUNREACH;
}

int neigh_resolve(struct neigh *n, uint64_t now, uid_t user, uint8_t sgid_index,
		  const uint8_t dgid[16], struct neigh_waiter *w, struct vnic_next_hop *hop)
{
	n->now = now;
	*w = (struct neigh_waiter){.user = user};
	return resolve(n, sgid_index, dgid, w, hop);
}

int neigh_resolve_persistently(struct neigh *n, uint64_t now, uid_t user, uint8_t sgid_index,
			       const uint8_t dgid[16], struct neigh_waiter *w,
			       struct vnic_next_hop *hop)
{
	n->now = now;
	*w = (struct neigh_waiter){.user = user, .persistent = true};
	return resolve(n, sgid_index, dgid, w, hop);
}

void neigh_kernel_answer(struct neigh *n, struct neigh_entry *e, const uint8_t *mac, bool permanent)
{
	if (mac)
		learn_kernel_mac(n, e, mac, permanent);
	else if (e->state == NEIGH_INCOMPLETE)
		fail_entry(n, e);
}

bool neigh_knows(struct neigh *n, uint64_t now, const uint8_t ip[16], uint16_t vlan,
		 const uint8_t mac[ETHER_MAC_LEN])
{
	const uint8_t *pinned = address_pins_find(&n->pins, ip, vlan);
	struct neigh_entry *e = NULL;

	if (pinned)
		return ether_same(pinned, mac);
	while ((e = neigh_table_next(&n->table, ip, vlan, e))) {
		if ((e->state != NEIGH_REACHABLE && e->state != NEIGH_PROBING) ||
		    !ether_same(e->mac, mac))
			continue;
		neigh_table_use(&n->table, e, now);
		return true;
	}
	return false;
}

/* Whether the neighbour has this MAC, at an uplink of `ports`. False for a peer behind a router:
 * the MAC is the router's, which has an entry of its own. */
static bool is_station(const struct neigh_entry *e, uint32_t ports,
		       const uint8_t mac[ETHER_MAC_LEN])
{
	return e->state != NEIGH_FREE && e->remembered && e->from.valid &&
	       ether_same(e->mac, mac) && e->port >= 0 && ports >> e->port & 1;
}

static bool has_left(const struct neigh_entry *e, uint64_t now)
{
	return e->state == NEIGH_INCOMPLETE || now < e->silent_until;
}

bool neigh_probe_station(struct neigh *n, uint64_t now, uint32_t wire, uint32_t unsettled,
			 const uint8_t mac[ETHER_MAC_LEN])
{
	struct neigh_entry *e;
	bool found = false;

	n->now = now;
	for (e = n->table.entries; e < n->table.entries + NEIGH_ENTRIES; e++) {
		if (!is_station(e, wire, mac))
			continue;
		if (unsettled >> e->port & 1) {
			found = true;
			continue;
		}
		if (has_left(e, now))
			continue;
		found = true;
		/* Compares answered_at, not `due`, because the kernel's answers set `due` anew
		 * without an answer of the neighbour. */
		if (e->state == NEIGH_REACHABLE && now >= e->answered_at + NEIGH_QUIET_NS)
			enter_probing(n, e);
	}
	return found;
}

/* --- The host's addresses */

static bool has_source(const struct neigh *n, const struct neigh_waiter *w)
{
	const struct host_address *own = host_address_by_gid(n->host, w->sgid_index);

	return own && own->vlan == w->vlan && !memcmp(own->ip, w->sgid, sizeof(own->ip));
}

/* Returns the source address, on the entry's uplink, of a request that waits for the entry; NULL:
 * none. */
static const struct host_address *find_waiting_source(const struct neigh *n,
						      const struct neigh_entry *e,
						      const struct neigh_waiter_list *list)
{
	const struct neigh_waiter *w;

	LIST_FOREACH(w, list, link)
	{
		const struct host_address *own = host_address_by_gid(n->host, w->sgid_index);

		if (has_source(n, w) && own->uplink == e->from.uplink)
			return own;
	}
	return NULL;
}

/* Checks the source address of the entry's solicitations. If the host no longer has it, takes that
 * of another waiting request. Returns false if there is none. */
static bool keep_source(const struct neigh *n, struct neigh_entry *e)
{
	const struct host_address *now = host_find_in_vlan(n->host, e->from.ip, e->from.vlan);

	if (now && now->uplink == e->from.uplink)
		return true;
	now = find_waiting_source(n, e, &e->waiters);
	if (!now)
		now = find_waiting_source(n, e, &e->persistent);
	if (now)
		e->from = *now;
	return now;
}

/*
 * Ends the requests whose source address is gone, while others go on waiting for the same next hop.
 */
static void end_waiters_without_source(struct neigh *n, struct neigh_waiter_list *list)
{
	struct neigh_waiter *w = LIST_FIRST(list);

	while (w) {
		if (has_source(n, w)) {
			w = LIST_NEXT(w, link);
			continue;
		}
		answer_waiter(n, w, -ENETUNREACH, NULL);
		/* Starts anew, because the callback may have changed the list. */
		w = LIST_FIRST(list);
	}
}

void neigh_host_changed(struct neigh *n)
{
	struct neigh_entry *e;

	for (e = n->table.entries; e < n->table.entries + NEIGH_ENTRIES; e++) {
		/* Entries of peers behind a router are never solicited, so they have no address of
		 * the host in `from`. */
		if (e->state == NEIGH_FREE || !e->from.valid)
			continue;
		if (!keep_source(n, e)) {
			drop_entry(n, e, -ENETUNREACH);
			continue;
		}
		end_waiters_without_source(n, &e->waiters);
		end_waiters_without_source(n, &e->persistent);
	}
}

/* --- Timers */

static void ask_again(struct neigh *n, struct neigh_entry *e)
{
	if (e->key.resolver == NEIGH_BY_KERNEL) {
		route_solicit_entry(n->route, e);
		set_due(n, e, n->now + ROUTE_TIMEOUT_NS);
	} else {
		e->tries = 0;
		send_solicitation(n, e);
	}
}

/* Handles the end of a resolution without an answer. First reads the kernel's table, because the
 * kernel may have reported its answer before this resolution began. */
static void give_up_solicited(struct neigh *n, struct neigh_entry *e)
{
	route_complete_entry(n->route, e);
	if (e->state != NEIGH_INCOMPLETE)
		return;
	fail_entry(n, e);
	if (e->state == NEIGH_INCOMPLETE)
		ask_again(n, e);
}

static void tick_entry(struct neigh *n, struct neigh_entry *e)
{
	if (e->state == NEIGH_PROBING) {
		if (e->tries < NEIGH_PROBES)
			send_probe(n, e);
		else
			give_up_known_mac(n, e);
	} else if (e->key.resolver == NEIGH_BY_DAEMON && e->tries < NEIGH_TRIES) {
		send_solicitation(n, e);
	} else {
		give_up_solicited(n, e);
	}
}

static bool has_timer(const struct neigh_entry *e)
{
	return e->state == NEIGH_INCOMPLETE || e->state == NEIGH_PROBING;
}

uint64_t neigh_deadline(const struct neigh *n)
{
	return LIST_EMPTY(&n->lost) ? n->next_due : n->now;
}

uint64_t neigh_tick(struct neigh *n, uint64_t now)
{
	struct neigh_waiter *w;
	struct neigh_entry *e;

	n->now = now;
	while ((w = LIST_FIRST(&n->lost)))
		answer_waiter(n, w, -EHOSTUNREACH, NULL);
	/* Under low load the main loop calls this once per frame, so it avoids the search of the
	 * table. */
	if (now < n->next_due)
		return n->next_due;
	n->next_due = UINT64_MAX;
	for (e = n->table.entries; e < n->table.entries + NEIGH_ENTRIES; e++) {
		if (has_timer(e) && e->due <= now)
			tick_entry(n, e);
		if (has_timer(e) && e->due < n->next_due)
			n->next_due = e->due;
	}
	return n->next_due;
}
