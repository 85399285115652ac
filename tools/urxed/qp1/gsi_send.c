/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sending side of QP1 (gsi.h): MADs wait until their next hop is known, and then for their
 * turn. */
#include <errno.h>
#include <string.h>

#include "urxed/qp1/gsi.h"

struct queued_mad {
	struct cm_path path; /* path.mac is that of the next hop, once it is known */
	uint8_t mad[CM_MAD_LEN];
};
_Static_assert(sizeof(struct queued_mad) <= FAIR_QUEUE_ROOM, "a MAD and its path fit into an item");

static void make_key(uint8_t key[FAIR_QUEUE_KEY], const struct cm_path *path)
{
	memset(key, 0, FAIR_QUEUE_KEY);
	memcpy(key, path->dgid, sizeof(path->dgid));
	key[sizeof(path->dgid)] = path->sgid_index;
}

/* --- MADs whose next hop is known */

static void post_mad(struct gsi *g, const struct queued_mad *m)
{
	const struct cm_path *path = &m->path;
	int pkey_index = host_find_pkey(g->host, path->pkey);
	struct urxe_path to = {.sgid_index = path->sgid_index,
			       .traffic_class = path->traffic_class,
			       .hop_limit = path->hop_limit,
			       .sl = path->sl & 7,
			       .flow_label = path->flow_label};
	const struct urxe_send_wr wr = {
		.opcode = URXE_WR_SEND,
		.flags = URXE_SEND_INLINE,
		.inline_len = CM_MAD_LEN,
		.inline_data = m->mad,
		.path = &to,
		.remote_qpn = URXE_QPN_GSI,
		.remote_qkey = CM_QKEY,
		.pkey_index = (uint16_t)(pkey_index < 0 ? 0 : pkey_index),
	};

	/* The host may have lost the address, and another address may have its index now. */
	if (!host_has_gid(g->host, path->sgid_index, path->sgid)) {
		g->drops[GSI_DROP_NO_ADDRESS]++;
		return;
	}
	memcpy(to.dgid.raw, path->dgid, sizeof(to.dgid.raw));
	memcpy(to.dmac, path->mac, sizeof(to.dmac));
	/*
	 * Without a next hop the engine would fail the request, and QP1 would enter the state SQE.
	 */
	if (!urxe_path_has_next_hop(&to)) {
		g->drops[GSI_DROP_NO_NEIGHBOUR]++;
		return;
	}
	if (urxe_post_send(g->qp, &wr))
		g->drops[GSI_DROP_NO_ROOM]++;
}

bool gsi_post_outgoing(struct gsi *g)
{
	uint8_t item[FAIR_QUEUE_ROOM] __attribute__((aligned(8)));
	int n = 0;

	while (n < GSI_BURST && fair_queue_take(&g->outgoing, item)) {
		post_mad(g, (const struct queued_mad *)(const void *)item);
		n++;
	}
	return n;
}

/* Queues a MAD whose next hop is known. Favours messages of connections, including REQs, and
 * rejections to known senders over other rejections. */
static void queue_outgoing(struct gsi *g, const struct queued_mad *m)
{
	const struct cm_path *path = &m->path;
	bool favoured = path->known || !path->has_mac;
	uint8_t key[FAIR_QUEUE_KEY];

	make_key(key, path);
	key[FAIR_QUEUE_KEY - 1] = favoured;
	if (!fair_queue_put(&g->outgoing, key, favoured, m, sizeof(*m)))
		g->drops[GSI_DROP_NO_ROOM]++;
}

bool gsi_has_room(const struct gsi *g, uint32_t n)
{
	return g->outgoing.n + n <= FAIR_QUEUE_ITEMS;
}

static void set_next_hop(struct queued_mad *m, const struct vnic_next_hop *hop)
{
	memcpy(m->path.mac, hop->mac, sizeof(m->path.mac));
	if (hop->hop_limit)
		m->path.hop_limit = hop->hop_limit;
}

/* --- MADs whose next hop is being resolved */

static struct gsi_hop *find_hop(struct gsi *g, const uint8_t key[FAIR_QUEUE_KEY])
{
	for (uint32_t i = 0; i <= GSI_HOPS; i++)
		if (g->hops[i].used && !memcmp(g->hops[i].key, key, FAIR_QUEUE_KEY))
			return &g->hops[i];
	return NULL;
}

static struct gsi_hop *find_unused_hop(struct gsi *g)
{
	struct gsi_hop *hop = g->hops;

	while (hop->used)
		hop++;
	return hop;
}

static void drop_mads_of_hop(struct gsi *g, const struct gsi_hop *hop)
{
	uint8_t item[FAIR_QUEUE_ROOM] __attribute__((aligned(8)));

	while (fair_queue_take_from(&g->unresolved, hop->key, item))
		g->drops[GSI_DROP_NO_NEIGHBOUR]++;
}

static void free_hop(struct gsi *g, struct gsi_hop *hop)
{
	hop->used = false;
	g->n_hops--;
}

static void give_up_oldest_hop(struct gsi *g)
{
	struct gsi_hop *oldest = NULL, *hop;

	for (hop = g->hops; hop <= g->hops + GSI_HOPS; hop++)
		if (hop->used && (!oldest || hop->number < oldest->number))
			oldest = hop;
	neigh_cancel(g->neigh, &oldest->waiter);
	drop_mads_of_hop(g, oldest);
	free_hop(g, oldest);
}

static void enter_hop(struct gsi *g, struct gsi_hop *hop, const uint8_t key[FAIR_QUEUE_KEY])
{
	hop->used = true;
	hop->number = ++g->last_hop;
	hop->waiter.asker = NEIGH_FOR_GSI;
	memcpy(hop->key, key, FAIR_QUEUE_KEY);
	if (++g->n_hops > GSI_HOPS)
		give_up_oldest_hop(g);
}

static void queue_unresolved(struct gsi *g, const uint8_t key[FAIR_QUEUE_KEY],
			     const struct queued_mad *m)
{
	if (!fair_queue_put(&g->unresolved, key, true, m, sizeof(*m)))
		g->drops[GSI_DROP_NO_ROOM]++;
}

static void resolve_and_queue(struct gsi *g, uint64_t now, struct queued_mad *m)
{
	struct gsi_hop *hop = find_unused_hop(g);
	uint8_t key[FAIR_QUEUE_KEY];
	struct vnic_next_hop next;

	make_key(key, &m->path);
	if (find_hop(g, key)) {
		queue_unresolved(g, key, m);
		return;
	}
	switch (neigh_resolve(g->neigh, now, NEIGH_PEERS, m->path.sgid_index, m->path.dgid,
			      &hop->waiter, &next)) {
	case 0:
		set_next_hop(m, &next);
		queue_outgoing(g, m);
		return;
	case -EINPROGRESS:
		enter_hop(g, hop, key);
		queue_unresolved(g, key, m);
		return;
	case -EINVAL: g->drops[GSI_DROP_NO_ADDRESS]++; return;
	default: g->drops[GSI_DROP_NO_NEIGHBOUR]++; return;
	}
}

void gsi_send(struct gsi *g, uint64_t now, const struct cm_path *path,
	      const uint8_t mad[CM_MAD_LEN])
{
	struct queued_mad m = {.path = *path};

	memcpy(m.mad, mad, CM_MAD_LEN);
	if (path->has_mac)
		queue_outgoing(g, &m);
	else
		resolve_and_queue(g, now, &m);
}

void gsi_neigh_answer(struct gsi *g, struct neigh_waiter *waiter, int status,
		      const struct vnic_next_hop *next)
{
	uint8_t item[FAIR_QUEUE_ROOM] __attribute__((aligned(8)));
	struct gsi_hop *hop = (struct gsi_hop *)waiter; /* its first member */
	struct queued_mad *m = (struct queued_mad *)(void *)item;

	free_hop(g, hop);
	if (status) {
		drop_mads_of_hop(g, hop);
		return;
	}
	while (fair_queue_take_from(&g->unresolved, hop->key, item)) {
		set_next_hop(m, next);
		queue_outgoing(g, m);
	}
}

void gsi_send_close(struct gsi *g)
{
	for (uint32_t i = 0; g->neigh && i <= GSI_HOPS; i++)
		if (g->hops[i].used)
			neigh_cancel(g->neigh, &g->hops[i].waiter);
}
