/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/psn.h>

#define BUCKETS 4096
/* A first packet further than this from the expected PSN means that the connection's PSNs begin
 * anew, because windows are far smaller. */
#define RESTART_PSNS 0x10000
/* Missing PSNs further behind the expected PSN than this count as missing for good. */
#define FORGET_PSNS 0x400000
/* Packets after which a flow without a peer stops searching for it. */
#define MATCH_TRIES 64

struct entry {
	struct flow flow;
	struct entry *next; /* the next one in its bucket */
	struct entry *next_single;
};

struct flow_table {
	struct entry *buckets[BUCKETS];
	/* Flows of RC and UC without a peer, by the hash of their addresses, the newest first. A
	 * flow that has found its peer leaves the list at the next search. */
	struct entry *singles[BUCKETS];
	struct entry **order;
	uint32_t n;
	uint32_t room;
};

static const char *const ack_names[FLOW_ACK_COUNT] = {
#define ACK_NAME(id, name, text) [FLOW_ACK_##id] = name,
	FLOW_ACK_LIST(ACK_NAME)
#undef ACK_NAME
};

const char *flow_ack_name(enum flow_ack ack)
{
	return ack < FLOW_ACK_COUNT ? ack_names[ack] : NULL;
}

/* --- Tracks */

/* How far the hole is behind the expected PSN. */
static uint32_t get_age(const struct flow_track *t, uint32_t i)
{
	return (t->next_psn - t->holes[i].first) & URXE_PSN_MASK;
}

/* Forgets holes so old that their distance to the expected PSN would soon be ambiguous in 24 bits.
 * Packets never come so late. */
static void forget_old_holes(struct flow_track *t)
{
	uint32_t old = 0;

	if (!t->n_holes || get_age(t, 0) < FORGET_PSNS + FORGET_PSNS / 2)
		return;
	while (old < t->n_holes && get_age(t, old) >= FORGET_PSNS)
		old++;
	t->n_holes -= old;
	memmove(t->holes, t->holes + old, t->n_holes * sizeof(*t->holes));
}

/* Inserts a hole at index `i`: the oldest is the first. 0 or -ENOMEM. */
static int add_hole(struct flow_track *t, uint32_t i, uint32_t first, uint32_t count)
{
	if (t->n_holes == t->room) {
		uint32_t room = t->room ? 2 * t->room : 16;
		struct flow_hole *holes = realloc(t->holes, room * sizeof(*holes));

		if (!holes)
			return -ENOMEM;
		t->holes = holes;
		t->room = room;
	}
	memmove(t->holes + i + 1, t->holes + i, (t->n_holes++ - i) * sizeof(*t->holes));
	t->holes[i] = (struct flow_hole){first, count};
	return 0;
}

/* Removes [from, from + n) from hole i, which contains it. 0 or -ENOMEM. */
static int cut_hole(struct flow_track *t, uint32_t i, uint32_t from, uint32_t n)
{
	struct flow_hole *hole = &t->holes[i];
	uint32_t before = (from - hole->first) & URXE_PSN_MASK;
	uint32_t after = hole->count - before - n;

	if (!before && !after) {
		memmove(hole, hole + 1, (--t->n_holes - i) * sizeof(*hole));
		return 0;
	}
	if (!before) {
		*hole = (struct flow_hole){urxe_psn_add(from, n), after};
		return 0;
	}
	hole->count = before;
	return after ? add_hole(t, i + 1, urxe_psn_add(from, n), after) : 0;
}

/* Counts a packet that takes `count` PSNs from `psn` on, before the expected PSN: as late if `psn`
 * is in a hole, else as a duplicate. 0 or -ENOMEM. */
static int count_late_or_duplicate(struct flow_track *t, uint32_t psn, uint32_t count)
{
	const uint32_t age = (t->next_psn - psn) & URXE_PSN_MASK;
	uint32_t low = 0, high = t->n_holes, middle, into, n;

	/* Finds the number of holes that begin at the PSN or before it. */
	while (low < high) {
		middle = low + (high - low) / 2;
		if (get_age(t, middle) >= age)
			low = middle + 1;
		else
			high = middle;
	}
	into = low ? (psn - t->holes[low - 1].first) & URXE_PSN_MASK : 0;
	if (!low || into >= t->holes[low - 1].count) {
		t->duplicates++;
		return 0;
	}
	n = t->holes[low - 1].count - into;
	if (n > count)
		n = count;
	t->late++;
	t->missing -= n;
	return cut_hole(t, low - 1, psn, n);
}

static void restart_track(struct flow_track *t, uint32_t psn)
{
	if (!t->packets)
		return;
	t->restarts++;
	t->next_psn = psn;
	t->n_holes = 0;
}

/* Returns how far the packet is ahead of the expected PSN; negative: behind it. */
static int32_t count_packet(struct flow_track *t, uint32_t psn)
{
	if (!t->packets++)
		t->first_psn = t->next_psn = psn;
	t->last_psn = psn;
	forget_old_holes(t);
	return urxe_psn_diff(psn, t->next_psn);
}

static void advance_next_psn(struct flow_track *t, uint32_t psn)
{
	if (urxe_psn_diff(psn, t->next_psn) > 0)
		t->next_psn = psn;
}

static int track_packet(struct flow_track *t, uint32_t psn, uint32_t count)
{
	int32_t ahead = count_packet(t, psn);
	int rc = 0;

	if (ahead < 0) {
		rc = count_late_or_duplicate(t, psn, count);
	} else if (ahead > 0) {
		t->gaps++;
		t->missing += (uint32_t)ahead;
		rc = add_hole(t, t->n_holes, t->next_psn, (uint32_t)ahead);
	}
	advance_next_psn(t, urxe_psn_add(psn, count));
	return rc;
}

/* --- The number of PSNs of READ requests */

/* PSNs of a READ (IBA 9.7.4.2.1): a packet for each MTU of the length, and one for a length of 0.
 */
static uint32_t read_psns(uint32_t len, uint32_t mtu)
{
	return len ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

/* Takes the length of a full payload as the path MTU of the flow and its peer, if it is longer than
 * the known one. Then the number of PSNs of the newest READ is known, too. Other lengths than the
 * five of IBA are no path MTU. */
static void learn_mtu(struct flow *f, uint32_t mtu)
{
	if (f->mtu >= mtu || mtu < 256 || mtu > 4096 || mtu & (mtu - 1))
		return;
	f->mtu = mtu;
	if (f->peer && f->peer->mtu < mtu)
		learn_mtu(f->peer, mtu);
	if (f->read_open)
		advance_next_psn(&f->requests,
				 urxe_psn_add(f->read_psn, read_psns(f->read_len, mtu)));
	f->read_open = false;
}

/*
 * `psn` is that of the request after a READ whose number of PSNs is unknown. The PSN shows this
 * number. If one path MTU gives the number, the function learns that MTU. If several do, the next
 * expected PSN is `psn`; if none does, the READ counts as many PSNs as with path MTU 4096.
 */
static void close_read(struct flow *f, uint32_t psn)
{
	int32_t took = urxe_psn_diff(psn, f->read_psn);
	uint32_t mtu, fits = 0, last = 0;

	if (!f->read_open || took <= 0)
		return;
	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		if (read_psns(f->read_len, mtu) == (uint32_t)took) {
			fits++;
			last = mtu;
		}
	}
	if (fits == 1)
		learn_mtu(f, last);
	else
		advance_next_psn(&f->requests,
				 fits ? psn
				      : urxe_psn_add(f->read_psn, read_psns(f->read_len, 4096)));
	f->read_open = false;
}

static void remember_read(struct flow *f, uint32_t len)
{
	uint32_t *psns = &f->recent_reads[f->reads++ % FLOW_RECENT_READS];

	f->recent_read_psns -= *psns;
	*psns = read_psns(len, f->mtu ? f->mtu : 256);
	f->recent_read_psns += *psns;
}

/*
 * Restarts the tracks if a request's PSN is far from the expected one, because the QP was connected
 * again: then the peer's responses have new PSNs, too. A PSN behind by no more than the PSNs of the
 * last READs is not far: a requester that goes back to the first missing response may repeat the
 * oldest of its outstanding READs.
 */
static void restart_requests_if_far(struct flow *f, uint32_t psn)
{
	int32_t ahead = urxe_psn_diff(psn, f->requests.next_psn);

	if (!f->requests.packets)
		return;
	if (ahead <= RESTART_PSNS && ahead >= -(int32_t)(RESTART_PSNS + f->recent_read_psns))
		return;
	restart_track(&f->requests, psn);
	memset(f->recent_reads, 0, sizeof(f->recent_reads));
	f->recent_read_psns = 0;
	if (f->peer)
		restart_track(&f->peer->responses, psn);
}

static int track_request(struct flow *f, const struct urxe_packet *p, uint32_t flags)
{
	uint32_t count = 1;
	int rc;

	close_read(f, p->psn);
	if (flags & URXE_OPF_START)
		restart_requests_if_far(f, p->psn);
	if (flags & URXE_OPF_READ)
		remember_read(f, p->reth.length);
	if (flags & URXE_OPF_READ && f->mtu)
		count = read_psns(p->reth.length, f->mtu);
	rc = track_packet(&f->requests, p->psn, count);
	if (flags & URXE_OPF_READ && !f->mtu) {
		f->read_open = true;
		f->read_psn = p->psn;
		f->read_len = p->reth.length;
	}
	if (flags & URXE_OPF_PAYLOAD && !(flags & URXE_OPF_END))
		learn_mtu(f, p->payload_len);
	return rc;
}

/* --- Responses */

/* The kind of an acknowledgement with this AETH syndrome (IBA table 43). */
static enum flow_ack get_ack_kind(uint8_t syndrome)
{
	static const enum flow_ack naks[] = {FLOW_ACK_SEQUENCE, FLOW_ACK_INVALID, FLOW_ACK_ACCESS,
					     FLOW_ACK_OPERATION};
	uint8_t value = syndrome & 0x1f;

	switch (syndrome >> 5) {
	case 0: return FLOW_ACK_ACK;
	case 1: return FLOW_ACK_RNR;
	case 3: return value < 4 ? naks[value] : FLOW_ACK_OTHER;
	default: return FLOW_ACK_OTHER;
	}
}

/* How far psn is behind the newest PSN of f's requests; negative: f has not used psn. */
static int32_t get_psn_distance(const struct flow *f, uint32_t psn)
{
	const struct flow_track *t = &f->requests;
	uint32_t next = t->next_psn;

	if (!t->packets)
		return -1;
	if (f->read_open)
		next = urxe_psn_add(f->read_psn, read_psns(f->read_len, 256));
	if (urxe_psn_diff(psn, t->first_psn) < 0)
		return -1;
	return urxe_psn_diff(next, psn) - 1;
}

static uint32_t hash_addresses(uint32_t h, const struct urxe_gid *from, const struct urxe_gid *to)
{
	for (uint32_t i = 0; i < 16; i++)
		h = (h ^ from->raw[i]) * 16777619u;
	for (uint32_t i = 0; i < 16; i++)
		h = (h ^ to->raw[i]) * 16777619u;
	return (h ^ h >> 16) % BUCKETS;
}

static struct entry **list_of_singles(struct flow_table *t, const struct urxe_gid *from,
				      const struct urxe_gid *to)
{
	return &t->singles[hash_addresses(2166136261u, from, to)];
}

static bool can_be_peers(const struct flow *a, const struct flow *b)
{
	return a->service == b->service && a->net == b->net &&
	       !memcmp(&a->sgid, &b->dgid, sizeof(a->sgid)) &&
	       !memcmp(&a->dgid, &b->sgid, sizeof(a->dgid));
}

/* Finds the peer of f: the flow whose requests f's responses answer. Of all candidates, takes the
 * one that has used psn most recently. */
static void find_peer(struct flow_table *t, struct flow *f, uint32_t psn)
{
	struct entry **at = list_of_singles(t, &f->dgid, &f->sgid);
	int32_t best = RESTART_PSNS - 1, distance;
	struct flow *found = NULL;

	if (f->peer || f->match_tries++ >= MATCH_TRIES)
		return;
	while (*at) {
		struct flow *other = &(*at)->flow;

		if (other->peer) {
			*at = (*at)->next_single;
			continue;
		}
		at = &(*at)->next_single;
		if (other == f || !can_be_peers(f, other))
			continue;
		distance = get_psn_distance(other, psn);
		/* At equal distances the oldest flow wins: the list begins with the newest. */
		if (distance >= 0 && distance <= best) {
			best = distance;
			found = other;
		}
	}
	if (!found)
		return;
	f->peer = found;
	found->peer = f;
	learn_mtu(f, found->mtu);
	learn_mtu(found, f->mtu);
}

/*
 * SENDs and WRITEs of the peer use PSNs for which no response comes. After 2^23 such PSNs, the next
 * response seems to be behind the expected PSN. If it lies between that and the peer's next
 * request, it is ahead: its PSN becomes the expected one. All holes are forgotten, because their
 * distances are ambiguous now.
 */
static void follow_requests(struct flow *f, uint32_t psn)
{
	struct flow_track *t = &f->responses;
	uint32_t ahead = (psn - t->next_psn) & URXE_PSN_MASK;

	if (f->peer && urxe_psn_diff(psn, t->next_psn) < -RESTART_PSNS &&
	    ahead < ((f->peer->requests.next_psn - t->next_psn) & URXE_PSN_MASK)) {
		t->next_psn = psn;
		t->n_holes = 0;
	}
}

/*
 * Counts the first packet of a response; 0 or -ENOMEM. A PSN far ahead is normal, because SENDs and
 * WRITEs use PSNs, too. When the PSNs begin anew, the peer's requests show it; if the peer is
 * unknown, a PSN far behind does.
 */
static int track_response_start(struct flow *f, uint32_t psn)
{
	struct flow_track *t = &f->responses;

	if (!f->peer && urxe_psn_diff(psn, t->next_psn) < -RESTART_PSNS)
		restart_track(t, psn);
	if (count_packet(t, psn) < 0)
		return count_late_or_duplicate(t, psn, 1);
	t->next_psn = urxe_psn_add(psn, 1);
	return 0;
}

/* Counts a packet of a response whose first packet is missing; 0 or -ENOMEM. The number of missing
 * packets is unknown. */
static int track_rest_of_response(struct flow_track *t, uint32_t psn)
{
	if (count_packet(t, psn) < 0)
		return count_late_or_duplicate(t, psn, 1);
	t->gaps++;
	t->next_psn = urxe_psn_add(psn, 1);
	return 0;
}

static int track_response(struct flow *f, const struct urxe_packet *p, uint32_t flags)
{
	bool first_packet_missed = !f->in_response && !(flags & URXE_OPF_START);

	f->in_response = !(flags & URXE_OPF_END);
	if (f->in_response)
		learn_mtu(f, p->payload_len);
	else if (f->peer && f->peer->read_open && flags & URXE_OPF_READ)
		advance_next_psn(&f->peer->requests, urxe_psn_add(p->psn, 1));
	if (flags & URXE_OPF_START || first_packet_missed)
		follow_requests(f, p->psn);
	if (flags & URXE_OPF_START)
		return track_response_start(f, p->psn);
	return first_packet_missed ? track_rest_of_response(&f->responses, p->psn)
				   : track_packet(&f->responses, p->psn, 1);
}

/* --- The table */

static bool is_same_flow(const struct flow *a, const struct flow *b)
{
	return a->dest_qpn == b->dest_qpn && a->src_qpn == b->src_qpn && a->service == b->service &&
	       a->net == b->net && !memcmp(&a->sgid, &b->sgid, sizeof(a->sgid)) &&
	       !memcmp(&a->dgid, &b->dgid, sizeof(a->dgid));
}

static struct entry *append_entry(struct flow_table *t)
{
	struct entry *e;

	if (t->n == t->room) {
		uint32_t room = t->room ? 2 * t->room : 64;
		struct entry **order = reallocarray(t->order, room, sizeof(struct entry *));

		if (!order)
			return NULL;
		t->order = order;
		t->room = room;
	}
	e = calloc(1, sizeof(*e));
	if (e)
		t->order[t->n++] = e;
	return e;
}

static struct flow *find_or_add_flow(struct flow_table *t, const struct flow *key)
{
	const uint32_t qpns = key->dest_qpn ^ key->src_qpn << 8;
	struct entry **head =
		&t->buckets[hash_addresses(2166136261u ^ qpns, &key->sgid, &key->dgid)];
	struct entry **singles = list_of_singles(t, &key->sgid, &key->dgid), *e;

	for (e = *head; e; e = e->next)
		if (is_same_flow(&e->flow, key))
			return &e->flow;
	e = append_entry(t);
	if (!e)
		return NULL;
	e->flow = *key;
	e->next = *head;
	*head = e;
	if (key->service != URXE_SERVICE_UD) {
		e->next_single = *singles;
		*singles = e;
	}
	return &e->flow;
}

struct flow_table *flow_table_create(void)
{
	return calloc(1, sizeof(struct flow_table));
}

void flow_table_destroy(struct flow_table *t)
{
	uint32_t i;

	for (i = 0; t && i < t->n; i++) {
		free(t->order[i]->flow.requests.holes);
		free(t->order[i]->flow.responses.holes);
		free(t->order[i]);
	}
	if (t)
		free(t->order);
	free(t);
}

const struct flow *flow_at(const struct flow_table *t, uint32_t index)
{
	return index < t->n ? &t->order[index]->flow : NULL;
}

/* A UD QP counts PSNs over all its destinations, so gaps in one flow have no meaning. */
static void track_datagram(struct flow_track *t, uint32_t psn)
{
	if (!t->packets++)
		t->first_psn = psn;
	t->last_psn = psn;
	t->next_psn = urxe_psn_add(psn, 1);
}

int flow_input(struct flow_table *t, const struct urxe_packet *p)
{
	struct flow key = {.sgid = p->sgid,
			   .dgid = p->dgid,
			   .dest_qpn = p->dest_qpn,
			   .src_qpn = p->deth.src_qpn,
			   .service = URXE_OPCODE_SERVICE(p->opcode),
			   .net = p->net};
	uint32_t flags = urxe_opcodes[p->opcode].flags;
	struct flow *f = find_or_add_flow(t, &key);

	if (!f)
		return -ENOMEM;
	f->packets++;
	if (f->service == URXE_SERVICE_UD) {
		track_datagram(&f->requests, p->psn);
		return 0;
	}
	if (flags & URXE_OPF_REQUEST)
		return track_request(f, p, flags);
	if (!(flags & URXE_OPF_RESPONSE))
		return 0;
	find_peer(t, f, p->psn);
	if (!(flags & URXE_OPF_ACK))
		return track_response(f, p, flags);
	f->acks[get_ack_kind(p->aeth.syndrome)]++;
	return 0;
}
