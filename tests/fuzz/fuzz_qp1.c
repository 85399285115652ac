/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile neighbours and a hostile local user against address resolution, QP1 and rdma_cm, in
 * virtual time: a peer that the host knows stays known, and is answered within 50 ms. When all is
 * over, all resources have come back.
 *
 * The script is a list of steps, a byte each with its arguments: see take_step().
 */
#include "qp1_net.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IDS       64
#define STEPS_MAX 64   /* with their bursts they take up to a second */
#define BURST_MAX 900  /* four fifths of it are more than QP1 keeps */
#define LAP       1024 /* frames that the switch may forward before the daemon runs QP1 */

static struct qp1_net net;
static struct cma_id *listener;
static struct cma_id *ids[IDS]; /* of the hostile user */

/* A source address: absent or not, by what the third party answers; or the peer's, or any bytes. */
static void choose_source(struct script *in, uint32_t i, uint8_t ip[16])
{
	uint8_t kind = script_get8(in);

	switch (kind & 3) {
	case 0: qp1_on_link(ip, 10 + (kind >> 2)); return;
	case 1: qp1_on_link(ip, 1000 + kind * 256u + i); return;
	case 2: memcpy(ip, net.peer.host.addresses[kind >> 7].ip, 16); return;
	default: qp1_on_link(ip, 1000 + script_get16(in)); return;
	}
}

/* A station that uses the peer's address has another MAC. */
static void choose_mac(const uint8_t ip[16], uint8_t mac[6])
{
	if (host_find_address(&net.peer.host, ip))
		memcpy(mac, qp1_macs[2], 6);
	else
		qp1_station_mac(&net, ip, mac);
}

/* One of the peer's requests is among those of the third party. */
static void flood_requests(struct script *in)
{
	uint16_t port = script_get8(in) & 1 ? QP1_HEARD : QP1_UNHEARD;
	uint32_t n = script_get16(in) % BURST_MAX, first = script_get16(in);
	const struct script source = *in;
	uint8_t ip[16], mac[6];

	for (uint32_t i = 0; i < n; i++) {
		struct script again = source;

		if (i == n / 5 && !net.request.id)
			qp1_peer_connects(&net, n & 1, QP1_UNHEARD);
		choose_source(&again, i, ip);
		choose_mac(ip, mac);
		qp1_attack_req(&net, ip, mac, port, first + i);
		if (i + 1 == n)
			*in = again;
	}
}

/* A message of any kind with any bytes; the IDs of a connection of the host may be among them. */
static void send_message(struct script *in)
{
	uint8_t bytes[CM_MAD_LEN] = {1, 7, 2, 3, [17] = script_get8(in)}, n = script_get8(in);
	uint8_t ip[16];

	choose_source(in, 0, ip);
	if (net.host.n_requests && net.host.requests[0]->conn)
		craft_put32(bytes + 28, cm_local_id(net.host.requests[0]->conn));
	for (uint8_t i = 0; i < n && in->left; i++) {
		uint8_t at = script_get8(in);

		bytes[at] = script_get8(in);
	}
	qp1_attack(&net, ip, qp1_macs[2], bytes);
}

static void claim_address(struct script *in)
{
	uint8_t ip[16], how = script_get8(in);

	choose_source(in, 0, ip);
	if (ip_is_v4(ip))
		qp1_attack_arp(&net, ip, how & 1);
}

/* The hostile user resolves, connects, or ends an ID. */
static void use_id(struct script *in)
{
	uint8_t at = script_get8(in) % IDS, what = script_get8(in);
	const struct cma_param param = {.qpn = QP1_QPN};
	struct cma_addr to;
	uint8_t ip[16];

	net.host.cma.now = net.now;
	if (!ids[at]) {
		ids[at] = qp1_create(&net.host, QP1_STRANGER);
		choose_source(in, at, ip);
		to = qp1_addr(ip, QP1_HEARD);
		(void)cma_resolve_addr(ids[at], NULL, &to, what * 100u);
	} else if (what & 1) {
		(void)cma_resolve_route(ids[at]);
		(void)cma_connect(ids[at], &param);
	} else {
		cma_destroy_id(ids[at]);
		ids[at] = NULL;
	}
}

/* The hostile user resolves many addresses one after the other. */
static void flood_resolutions(struct script *in)
{
	uint32_t n = script_get16(in) % BURST_MAX;
	struct cma_addr to;
	uint8_t ip[16];

	for (uint32_t i = 0; i < n; i++) {
		struct cma_id **id = &ids[i % IDS];

		net.host.cma.now = net.now;
		if (*id)
			cma_destroy_id(*id);
		*id = qp1_create(&net.host, QP1_STRANGER);
		qp1_on_link(ip, 1000 + i);
		to = qp1_addr(ip, QP1_HEARD);
		(void)cma_resolve_addr(*id, NULL, &to, 60000);
	}
}

/* The peer's request is among earlier steps' frames, or else behind them. */
static void expect_peer_is_answered(uint8_t how)
{
	if (!net.request.id)
		qp1_peer_connects(&net, how & 1, QP1_UNHEARD);
	require(qp1_peer_was_answered(&net, how & 2 ? LAP : 1 + (how >> 4)));
	require(qp1_knows_peer(&net, false) && qp1_knows_peer(&net, true));
}

static void take_step(struct script *in)
{
	uint8_t how;

	switch (script_get8(in) % 10) {
	case 0:
	case 1: flood_requests(in); return;
	case 2: send_message(in); return;
	case 3: claim_address(in); return;
	case 4: use_id(in); return;
	case 5: flood_resolutions(in); return;
	case 6:
		how = script_get8(in);
		net.answers = how & 1;
		net.host.accepts = how & 2;
		net.many_macs = how & 4;
		return;
	case 7:
		how = script_get8(in);
		qp1_run(&net, net.now + how * QP1_MS * (how & 1 ? 1 : 100), 1 + (how & 0xf0) * 4);
		return;
	default: expect_peer_is_answered(script_get8(in)); return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script in = {data, size};

	qp1_open(&net);
	memset(ids, 0, sizeof(ids));
	listener = qp1_listen(&net);
	require(qp1_peer_is_answered(&net, false, QP1_HEARD, 1));
	require(qp1_peer_is_answered(&net, true, QP1_HEARD, 1));
	for (int i = 0; in.left && i < STEPS_MAX; i++) {
		take_step(&in);
		/* So a step finds room for all of its frames. */
		if (net.n > QP1_ATTACK - BURST_MAX)
			qp1_run(&net, net.now + QP1_MS, LAP);
	}
	expect_peer_is_answered(2);
	for (int i = 0; i < IDS; i++)
		if (ids[i])
			cma_destroy_id(ids[i]);
	cma_destroy_id(listener);
	qp1_close(&net);
	return 0;
}
