/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two hosts on one Ethernet in virtual time, each with the daemon's address resolution, QP1 and
 * rdma_cm, but without the switch: the host under attack, and a peer that has exchanged messages
 * with it before the attack. This file plays the programs of both. A third party sends frames to
 * the host. tests/unit/tools/urxed/test_qp1.c and tests/fuzz/daemon/fuzz_qp1.c use it.
 *
 * The peer has pinned the host's MAC. So a request of the peer is on the wire when
 * qp1_peer_connects returns, behind all earlier frames and before all later ones.
 */
#ifndef URXE_TEST_QP1_NET_H
#define URXE_TEST_QP1_NET_H

#include <stddef.h>
#include <string.h>

#include <cm/ip.h>

#include "craft.h"
#include "require.h"
#include "urxed/cm/cma.h"
#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"
#include "urxed/qp1/gsi.h"
#include "urxed/switch/classify.h"

#define QP1_DELAY    100000u /* ns, from the sender to the receiver */
#define QP1_MS       1000000ull
#define QP1_SECOND   1000000000ull
#define QP1_LIMIT    (50 * QP1_MS) /* within which the known peer gets its answer */
#define QP1_FLYING   8192
#define QP1_ATTACK   2048 /* the third party sends while fewer frames are on the wire */
#define QP1_IDS      4096
#define QP1_HEARD    7174 /* port of the host's listener */
#define QP1_UNHEARD  7175
#define QP1_QPN      0x1000
#define QP1_UD_SEND  0x64
#define QP1_STRANGER 4711 /* a local user with quotas */

struct qp1_net;

struct qp1_host {
	struct qp1_net *net;
	struct host host;
	struct neigh neigh;
	struct gsi gsi;
	struct cma cma;
	bool accepts;                     /* the program accepts requests at once */
	struct cma_id *requests[QP1_IDS]; /* that arrived, in their order */
	uint32_t n_requests, n_answered;  /* requests[0] to [n_answered - 1] are answered */
	uint32_t events[CMA_TIMEWAIT_EXIT + 1];
	int disconnect_status; /* of the last event DISCONNECTED */
};

struct qp1_frame {
	uint64_t due;
	struct qp1_host *to;
	uint32_t len;
	uint8_t data[512];
};

struct qp1_net {
	uint64_t now;
	struct qp1_host host, peer;
	uint32_t first, n; /* of flying, a ring */
	/* Frames of the host to neither the peer nor a group; of these RoCE. */
	uint32_t to_others, roce_to_others;
	uint32_t to_groups; /* frames of the host: questions to all stations */
	uint8_t last_to_others[512];
	uint32_t last_len;
	bool stalled;   /* the host's switch takes no frames of QP1 */
	bool answers;   /* the third party answers for every address that the host solicits */
	bool many_macs; /* the third party has a MAC for each address, not third_mac for all */
	uint8_t third_mac[6];
	uint32_t frame_number;
	/* The peer's request, if id is not NULL; `answered` 0 = not yet. In ns. */
	struct {
		struct cma_id *id;
		uint64_t sent, answered;
	} request;
	struct qp1_frame flying[QP1_FLYING]; /* last, because qp1_open does not clear it */
};

static const uint8_t qp1_macs[3][6] = {
	{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 9}, {2, 0, 0, 0, 0, 0x66}};

/* --- The wire */

static inline void qp1_fly(struct qp1_net *net, struct qp1_host *to, const uint8_t *frame,
			   uint32_t len)
{
	struct qp1_frame *f = &net->flying[(net->first + net->n) % QP1_FLYING];

	require(net->n < QP1_FLYING && len <= sizeof(f->data));
	net->n++;
	f->due = net->now + QP1_DELAY;
	f->to = to;
	f->len = len;
	memcpy(f->data, frame, len);
}

/* The MAC with which the third party uses an address. */
static inline void qp1_station_mac(const struct qp1_net *net, const uint8_t ip[16], uint8_t mac[6])
{
	memcpy(mac, net->third_mac, 6);
	if (!net->many_macs)
		return;
	mac[1] = 0x66;
	memcpy(mac + 2, ip + 12, 4);
}

static inline void qp1_answer_arp(struct qp1_net *net, const struct arp *question)
{
	uint8_t out[ARP_FRAME_LEN];
	struct arp a = {.request = false};

	qp1_station_mac(net, question->tip, a.smac);
	memcpy(a.sip, question->tip, 16);
	memcpy(a.tip, question->sip, 16);
	arp_build(out, &a, question->smac);
	qp1_fly(net, &net->host, out, sizeof(out));
}

static inline void qp1_answer_nd(struct qp1_net *net, const struct nd *question)
{
	uint8_t out[ND_FRAME_LEN], mac[6];

	qp1_station_mac(net, question->target, mac);
	nd_build_advertisement(out, question, mac);
	qp1_fly(net, &net->host, out, sizeof(out));
}

/* The third party answers for the address that the host solicits from all stations. */
static inline void qp1_answer(struct qp1_net *net, const uint8_t *frame, uint32_t len)
{
	struct arp a;
	struct nd m;

	if (!net->answers || !ether_is_group(frame))
		return;
	if (arp_parse(&a, frame, len)) {
		if (a.request && !host_find_address(&net->peer.host, a.tip))
			qp1_answer_arp(net, &a);
	} else if (nd_parse(&m, frame, len)) {
		if (m.solicitation && !host_find_address(&net->peer.host, m.target))
			qp1_answer_nd(net, &m);
	}
}

static inline bool qp1_cma_has_room(void *ctx)
{
	const struct qp1_host *h = ctx;

	return gsi_has_room(&h->gsi, CM_TICK_MAX);
}

static inline bool qp1_has_room(void *ctx)
{
	const struct qp1_host *h = ctx;

	return h != &h->net->host || !h->net->stalled;
}

static inline void qp1_send(void *ctx, const uint8_t *frame, uint32_t len)
{
	struct qp1_host *h = ctx;
	struct qp1_net *net = h->net;
	struct qp1_host *other = h == &net->host ? &net->peer : &net->host;
	struct frame_class s;

	/* As the switch does. */
	if (ether_same(frame, h->host.mac))
		gsi_input(&h->gsi, net->now, frame, len);
	else if (ether_is_group(frame) || ether_same(frame, other->host.mac))
		qp1_fly(net, other, frame, len);
	if (h != &net->host)
		return;
	qp1_answer(net, frame, len);
	net->to_groups += ether_is_group(frame);
	if (ether_is_group(frame) || ether_same(frame, other->host.mac))
		return;
	net->to_others++;
	classify_frame(&s, frame, len);
	net->roce_to_others += s.kind == FRAME_ROCE;
	net->last_len = len;
	memcpy(net->last_to_others, frame, len);
}

static inline void qp1_neigh_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)uplink;
	qp1_send(ctx, frame, len);
}

static inline const uint8_t *qp1_neigh_mac(void *ctx, int uplink)
{
	const struct qp1_host *h = ctx;

	(void)uplink;
	return h->host.mac;
}

static inline void qp1_neigh_answer(void *ctx, struct neigh_waiter *w, int status,
				    const struct vnic_next_hop *hop)
{
	struct qp1_host *h = ctx;

	if (w->asker == NEIGH_FOR_CMA)
		cma_neigh_answer(w, status, hop);
	else
		gsi_neigh_answer(&h->gsi, w, status, hop);
}

/* As the switch does: what comes from outside has neither the host's MAC nor its address. */
static inline void qp1_arrive(struct qp1_net *net, const struct qp1_frame *f)
{
	struct qp1_host *h = f->to;
	struct frame_class s;

	classify_frame(&s, f->data, f->len);
	if (s.kind == FRAME_ARP || s.kind == FRAME_ND)
		neigh_input(&h->neigh, net->now, 0, f->data, f->len);
	else if (s.kind == FRAME_ROCE && s.dest_qpn == URXE_QPN_GSI &&
		 s.service == FRAME_DATAGRAM && ether_same(s.dmac, h->host.mac) &&
		 !ether_is_group(s.smac))
		gsi_input(&h->gsi, net->now, f->data, f->len);
	/* The peer has time for each frame: what it loses under load is no fault of the host. */
	if (h == &net->peer)
		gsi_run(&h->gsi, net->now);
}

/* --- Programs */

static inline void qp1_cma_send(void *ctx, const struct cm_path *path,
				const uint8_t mad[CM_MAD_LEN])
{
	struct qp1_host *h = ctx;

	gsi_send(&h->gsi, h->net->now, path, mad);
}

static inline uint16_t qp1_mtu_to_peer(void *ctx, const struct cma_id *id)
{
	(void)id;
	return ((struct qp1_host *)ctx)->host.mtu;
}

static inline void qp1_cma_event(struct cma_id *id, const struct cma_event *event)
{
	struct qp1_host *h = id->ctx;

	h->events[event->type]++;
	if (event->type == CMA_DISCONNECTED)
		h->disconnect_status = event->status;
	if (id == h->net->request.id &&
	    (event->type == CMA_CONNECT_RESPONSE || event->type == CMA_REJECTED))
		h->net->request.answered = h->net->now;
}

static inline bool qp1_cma_request(struct cma_id *listener, struct cma_id *id,
				   const struct cma_event *event)
{
	struct qp1_host *h = listener->ctx;

	(void)event;
	if (h->n_requests == QP1_IDS)
		return false;
	id->ctx = h;
	h->requests[h->n_requests++] = id;
	return true;
}

static inline void qp1_gsi_input(void *ctx, uint64_t now, const struct cm_path *path,
				 const uint8_t mad[CM_MAD_LEN])
{
	struct qp1_host *h = ctx;

	cma_input(&h->cma, now, path, mad);
}

/* The program answers all requests; it ends the older ones. */
static inline void qp1_accept_requests(struct qp1_host *h)
{
	const struct cma_param param = {.qpn = QP1_QPN};

	if (!h->accepts)
		return;
	while (h->n_answered < h->n_requests)
		(void)cma_accept(h->requests[h->n_answered++], &param);
	if (h->n_requests <= QP1_IDS / 2)
		return;
	for (uint32_t i = 0; i < QP1_IDS / 4; i++)
		cma_destroy_id(h->requests[i]);
	h->n_requests -= QP1_IDS / 4;
	h->n_answered = h->n_requests;
	memmove(h->requests, h->requests + QP1_IDS / 4, h->n_requests * sizeof(h->requests[0]));
}

static inline void qp1_end_requests(struct qp1_host *h)
{
	while (h->n_requests)
		cma_destroy_id(h->requests[--h->n_requests]);
	h->n_answered = 0;
}

/* --- Hosts and time */

/* As the daemon's loop does. */
static inline uint64_t qp1_tick_host(struct qp1_host *h)
{
	uint64_t now = h->net->now, next, due;

	neigh_tick(&h->neigh, now);
	gsi_run(&h->gsi, now);
	qp1_accept_requests(h);
	cma_tick(&h->cma, now);
	gsi_run(&h->gsi, now);
	next = cma_next_deadline(&h->cma);
	due = neigh_deadline(&h->neigh);
	return due < next ? due : next;
}

static inline uint64_t qp1_tick(struct qp1_net *net)
{
	uint64_t host = qp1_tick_host(&net->host), peer = qp1_tick_host(&net->peer);

	return host < peer ? host : peer;
}

/* All frames have the same delay, so they arrive in order. The host ticks behind each `burst`. */
static inline void qp1_run(struct qp1_net *net, uint64_t until, uint32_t burst)
{
	for (;;) {
		uint64_t next = qp1_tick(net);
		uint32_t n = 0;

		if (net->n && net->flying[net->first].due < next)
			next = net->flying[net->first].due;
		if (next > until)
			break;
		net->now = next > net->now ? next : net->now;
		while (n++ < burst && net->n && net->flying[net->first].due <= net->now) {
			qp1_arrive(net, &net->flying[net->first]);
			net->first = (net->first + 1) % QP1_FLYING;
			net->n--;
		}
	}
	if (until > net->now && until != UINT64_MAX)
		net->now = until;
}

static inline void qp1_open_host(struct qp1_net *net, struct qp1_host *h, const uint8_t *mac,
				 const char *v4, const char *v6)
{
	static const struct neigh_ops neigh_ops = {qp1_neigh_send, qp1_neigh_mac, qp1_neigh_answer};
	static const struct gsi_ops gsi_ops = {qp1_has_room, qp1_send, qp1_gsi_input};
	static const struct cma_ops cma_ops = {qp1_cma_send, qp1_cma_has_room, qp1_mtu_to_peer,
					       qp1_cma_event, qp1_cma_request};

	h->net = net;
	host_init(&h->host);
	memcpy(h->host.mac, mac, 6);
	require(!host_add_text(&h->host, v4, 0) && !host_add_text(&h->host, v6, 0));
	require(!host_add_pkey(&h->host, "0xffff"));
	neigh_init(&h->neigh, &h->host, &neigh_ops, h);
	require(!gsi_open(&h->gsi, &h->host, &h->neigh, &gsi_ops, h));
	require(!cma_open(&h->cma, &h->host, &h->neigh, &cma_ops, h));
	h->cma.now = net->now;
}

static inline void qp1_pin(struct qp1_host *h, const struct qp1_host *other)
{
	struct address_pin pin = {0};

	memcpy(pin.mac, other->host.mac, 6);
	for (int v6 = 0; v6 < 2; v6++) {
		memcpy(pin.ip, other->host.addresses[v6].ip, 16);
		require(!address_pins_add(&h->neigh.pins, &pin));
	}
}

static inline void qp1_open(struct qp1_net *net)
{
	memset(net, 0, offsetof(struct qp1_net, flying));
	net->now = QP1_SECOND;
	memcpy(net->third_mac, qp1_macs[2], 6);
	qp1_open_host(net, &net->host, qp1_macs[0], "192.0.2.1/24", "2001:db8::1/64");
	qp1_open_host(net, &net->peer, qp1_macs[1], "192.0.2.9/24", "2001:db8::9/64");
	qp1_pin(&net->peer, &net->host);
	net->host.accepts = true;
}

static inline void qp1_close_host(struct qp1_host *h)
{
	require(!cm_conns(h->cma.cm) && !h->neigh.waiting.total);
	require(!h->cma.ports.ephemeral.total && !h->cma.ports.other.total);
	require(!h->gsi.n_hops && !h->gsi.received.n && !h->gsi.unresolved.n && !h->gsi.outgoing.n);
	cma_close(&h->cma);
	gsi_close(&h->gsi);
	neigh_fini(&h->neigh);
}

/* Programs have ended, and nobody sends any more: all resources come back. */
static inline void qp1_close(struct qp1_net *net)
{
	qp1_end_requests(&net->host);
	qp1_end_requests(&net->peer);
	net->answers = false;
	qp1_run(net, net->now + 1000 * QP1_SECOND, UINT32_MAX);
	qp1_close_host(&net->host);
	qp1_close_host(&net->peer);
}

/* --- Addresses and IDs */

static inline struct cma_addr qp1_addr(const uint8_t ip[16], uint16_t port)
{
	struct cma_addr a = {.family = ip_is_v4(ip) ? AF_INET : AF_INET6, .port = port};

	memcpy(a.ip, ip, 16);
	return a;
}

/* The on-link address 192.0.2.n, or with n > 255 one of 2001:db8::/64. */
static inline void qp1_on_link(uint8_t ip[16], uint32_t n)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 192, 0, 2};
	static const uint8_t v6[16] = {0x20, 1, 0xd, 0xb8, [8] = 1};

	memcpy(ip, n <= UINT8_MAX ? v4 : v6, 16);
	ip[15] = (uint8_t)n;
	if (n <= UINT8_MAX)
		return;
	ip[14] = (uint8_t)(n >> 8);
	ip[13] = (uint8_t)(n >> 16);
}

static inline struct cma_id *qp1_create(struct qp1_host *h, uid_t user)
{
	struct cma_id *id;

	h->cma.now = h->net->now;
	require(!cma_create_id(&h->cma, user, CM_PS_TCP, CMA_RC, h, &id));
	return id;
}

static inline struct cma_id *qp1_listen(struct qp1_net *net)
{
	struct cma_id *id = qp1_create(&net->host, 0);
	const struct cma_addr any = {.family = AF_INET6, .port = QP1_HEARD};

	require(!cma_bind(id, &any) && !cma_listen(id));
	return id;
}

/* The peer sends a request to a port of the host. */
static inline void qp1_peer_connects(struct qp1_net *net, bool v6, uint16_t port)
{
	const struct cma_addr to = qp1_addr(net->host.host.addresses[v6].ip, port);
	const struct cma_param param = {.qpn = QP1_QPN};
	struct cma_id *id = qp1_create(&net->peer, 0);
	uint32_t n = net->n;

	require(!net->request.id);
	net->request.id = id;
	net->request.sent = net->now;
	net->request.answered = 0;
	require(!cma_resolve_addr(id, NULL, &to, 1000) && !cma_resolve_route(id));
	require(!cma_connect(id, &param));
	gsi_run(&net->peer.gsi, net->now);
	require(net->n > n);
}

/* Runs until the limit; true: the peer's request was answered within the limit. */
static inline bool qp1_peer_was_answered(struct qp1_net *net, uint32_t burst)
{
	const uint64_t end = net->request.sent + QP1_LIMIT;
	uint64_t answered;

	if (net->now < end)
		qp1_run(net, end, burst);
	answered = net->request.answered;
	net->peer.cma.now = net->now;
	cma_destroy_id(net->request.id);
	net->request.id = NULL;
	return answered && answered <= end;
}

static inline bool qp1_peer_is_answered(struct qp1_net *net, bool v6, uint16_t port, uint32_t burst)
{
	qp1_peer_connects(net, v6, port);
	return qp1_peer_was_answered(net, burst);
}

static inline bool qp1_knows_peer(struct qp1_net *net, bool v6)
{
	return neigh_knows(&net->host.neigh, net->now, net->peer.host.addresses[v6].ip, 0,
			   net->peer.host.mac);
}

/* --- The third party */

/*
 * Sends a MAD to the host's QP1 from any address and MAC; sends nothing if QP1_ATTACK frames are on
 * the wire, so that answers find room.
 */
static inline void qp1_attack(struct qp1_net *net, const uint8_t sip[16], const uint8_t smac[6],
			      const uint8_t mad[CM_MAD_LEN])
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p = {.net = ip_is_v4(sip) ? URXE_NET_IPV4 : URXE_NET_IPV6,
				.hop_limit = 64,
				.udp_sport = 0xc000,
				.opcode = QP1_UD_SEND,
				.mig_req = true,
				.pkey = 0xffff,
				.dest_qpn = URXE_QPN_GSI,
				.psn = net->frame_number++ & 0xffffff,
				.deth = {.qkey = CM_QKEY, .src_qpn = URXE_QPN_GSI},
				.payload = mad,
				.payload_len = CM_MAD_LEN};
	uint32_t len;

	memcpy(p.dmac, qp1_macs[0], 6);
	memcpy(p.smac, smac, 6);
	memcpy(p.sgid.raw, sip, 16);
	memcpy(p.dgid.raw, net->host.host.addresses[ip_is_v4(sip) ? 0 : 1].ip, 16);
	len = craft_frame(frame, &p);
	if (net->n < QP1_ATTACK)
		qp1_fly(net, &net->host, frame, len);
}

/* A REQ with a number of its own, whose CM IP header has the addresses of the packet. */
static inline void qp1_attack_req(struct qp1_net *net, const uint8_t sip[16], const uint8_t smac[6],
				  uint16_t port, uint32_t number)
{
	struct cm_ip_hdr hdr = {.src_port = 9, .v6 = !ip_is_v4(sip)};
	struct cm_mad mad = {.attr = CM_REQ,
			     .tid = number,
			     .req = {.local_id = number + 1,
				     .ca_guid = 0xbad,
				     .qpn = number & 0xffffff,
				     .service_id = cm_service_id(CM_PS_TCP, port),
				     .pkey = 0xffff,
				     .mtu = 3,
				     .local_response = 20,
				     .max_cm_retries = 15}};
	uint8_t bytes[CM_MAD_LEN];

	memcpy(hdr.src, sip, 16);
	memcpy(hdr.dst, net->host.host.addresses[ip_is_v4(sip) ? 0 : 1].ip, 16);
	cm_ip_build(&hdr, mad.private_data);
	cm_mad_build(&mad, bytes);
	qp1_attack(net, sip, smac, bytes);
}

/* Claims an IPv4 address for the third party's MAC. */
static inline void qp1_attack_arp(struct qp1_net *net, const uint8_t sip[16], bool request)
{
	uint8_t frame[ARP_FRAME_LEN];
	struct arp a = {.request = request};

	memcpy(a.smac, qp1_macs[2], 6);
	memcpy(a.sip, sip, 16);
	memcpy(a.tip, net->host.host.addresses[0].ip, 16);
	arp_build(frame, &a, qp1_macs[0]);
	if (net->n < QP1_ATTACK)
		qp1_fly(net, &net->host, frame, sizeof(frame));
}

#endif
