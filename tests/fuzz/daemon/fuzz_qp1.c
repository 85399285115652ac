/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile neighbours and a hostile local user against address resolution, QP1 and rdma_cm, in
 * virtual time: a peer that the host knows stays known, and is answered within 50 ms. Neither other
 * hosts nor the user hold more than their quota of neighbours. When all is over, all resources have
 * come back.
 *
 * Both hosts live on between inputs (world.h). An input is a list of steps, a byte each with its
 * arguments: see take_step(). Frames stay on the wire until a step lets time pass, so floods build
 * up from input to input. Each LONG_INPUTS-th input may send as many frames in one step as QP1
 * cannot keep.
 */
#include "conn_id.h"
#include "qp1_net.h"
#include "script.h"
#include "world.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

#define INPUTS      4096 /* of one world */
#define LONG_INPUTS 1024
#define PROBES      16 /* the peer connects after so many inputs */
#define ASKED       4  /* and after so many if an input asks for it */
#define QUOTAS      64 /* they are counted after so many inputs */
#define STEPS       4
#define STEP_BYTES  8
#define IDS         64
#define KINDS       (CM_SIDR_REP - CM_REQ + 1) /* of messages, almost all of which exist */
#define BURST_MAX   900                        /* four fifths of it are more than QP1 keeps */
#define BURST_SHORT 4                          /* of other than long inputs */
#define LAP         1024 /* frames that the switch may forward before the daemon runs QP1 */
/* The host may forget a peer that is silent for an hour. */
#define SILENCE (1200 * QP1_SECOND)

static struct qp1_net net;
static struct cma_id *listener; /* NULL: the program does not run */
static struct cma_id *ids[IDS]; /* of the hostile user */
static uint32_t n_addresses;    /* that only one frame or resolution has named */
static uint64_t last_probe[2];  /* ns; by IPv4 and by IPv6 */
static uint32_t last_answer;    /* the input at which the peer was answered */

static bool is_long(void)
{
	return world_inputs() % LONG_INPUTS == 0;
}

static uint32_t get_burst(struct script *in)
{
	return script_get16(in) % (is_long() ? BURST_MAX : BURST_SHORT);
}

static void connect_peer(bool v6)
{
	last_probe[v6] = net.now;
	qp1_peer_connects(&net, v6, QP1_UNHEARD);
}

/* So that the addresses of a world are many more than its hosts may remember. */
static void choose_new_address(uint8_t ip[16])
{
	qp1_on_link(ip, 1000 + n_addresses++);
}

/* A source address: absent or not, by what the third party answers; or the peer's, or any bytes. */
static void choose_source(struct script *in, uint8_t ip[16])
{
	uint8_t kind = script_get8(in);

	switch (kind & 3) {
	case 0: qp1_on_link(ip, 10 + (kind >> 2)); return;
	case 1: choose_new_address(ip); return;
	case 2: memcpy(ip, net.peer.host.addresses[kind >> 7].ip, 16); return;
	default: qp1_on_link(ip, 1000 + script_get16(in)); return;
	}
}

/* A station that uses the peer's address has another MAC, and each 256th address MAC 0. */
static void choose_mac(const uint8_t ip[16], uint8_t mac[6])
{
	if (host_find_address(&net.peer.host, ip))
		memcpy(mac, qp1_macs[2], 6);
	else if (ip[15] == 10)
		memset(mac, 0, 6);
	else
		qp1_station_mac(&net, ip, mac);
}

/* One of the peer's requests is among those of the third party. */
static void flood_requests(struct script *in)
{
	uint16_t port = script_get8(in) & 1 ? QP1_HEARD : QP1_UNHEARD;
	uint32_t n = get_burst(in), first = script_get16(in);
	const struct script source = *in;
	uint8_t ip[16], mac[6];

	for (uint32_t i = 0; i < n; i++) {
		struct script again = source;

		if (i == n / 5 && !net.request.id)
			connect_peer(n & 1);
		choose_source(&again, ip);
		choose_mac(ip, mac);
		qp1_attack_req(&net, ip, mac, port, first + i);
		if (i + 1 == n)
			*in = again;
	}
}

/* A message of any kind with any bytes; the IDs of a connection of the host may be among them. */
static void send_message(struct script *in)
{
	const uint8_t kind = script_get8(in), n = script_get8(in);
	uint8_t bytes[CM_MAD_LEN] = {1, 7, 2, 3, [17] = kind < 0xf0 ? CM_REQ + kind % KINDS : kind};
	uint8_t ip[16];

	bytes[24 + 50] = CM_MTU_MAX << 4; /* of a REQ, else its path MTU would be invalid */
	choose_source(in, ip);
	if (net.host.n_requests && net.host.requests[0]->conn)
		craft_put32(bytes + 28, conn_id(net.host.requests[0]->conn));
	for (uint8_t i = 0; i < n && in->left; i++) {
		uint8_t at = script_get8(in);

		bytes[at] = script_get8(in);
	}
	qp1_attack(&net, ip, qp1_macs[2], bytes);
}

static void claim_address(struct script *in)
{
	uint8_t ip[16], how = script_get8(in);

	choose_source(in, ip);
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
		choose_source(in, ip);
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
	uint32_t n = get_burst(in);
	struct cma_addr to;
	uint8_t ip[16];

	for (uint32_t i = 0; i < n; i++) {
		struct cma_id **id = &ids[i % IDS];

		net.host.cma.now = net.now;
		if (*id)
			cma_destroy_id(*id);
		*id = qp1_create(&net.host, QP1_STRANGER);
		choose_new_address(ip);
		to = qp1_addr(ip, QP1_HEARD);
		(void)cma_resolve_addr(*id, NULL, &to, 60000);
	}
}

/* --- The peer */

/* As neigh_knows, which would count as a use of the neighbour. */
static bool has_neighbour(bool v6)
{
	struct neigh_key key = {.resolver = NEIGH_BY_DAEMON};
	const struct neigh_entry *e;

	memcpy(key.ip, net.peer.host.addresses[v6].ip, sizeof(key.ip));
	e = neigh_table_find(&net.host.neigh.table, &key);
	return e && (e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBING) &&
	       ether_same(e->mac, net.peer.host.mac);
}

/* The peer's request is among earlier steps' frames, or else behind them. */
static void expect_peer_is_answered(uint8_t how)
{
	if (!net.request.id)
		connect_peer(how & 1);
	require(qp1_peer_was_answered(&net, how & 2 ? LAP : 1 + (how >> 4)));
	last_answer = world_inputs();
}

/* Half of what others leave (quota.h) is never more than half of all. */
static void check_quotas(void)
{
	const struct neigh_entry *e = net.host.neigh.table.entries;
	uint32_t of_user = 0, of_hosts = 0;

	for (int i = 0; i < NEIGH_ENTRIES; i++, e++) {
		of_user += e->state != NEIGH_FREE && e->user == QP1_STRANGER;
		of_hosts += e->state != NEIGH_FREE && e->user == NEIGH_PEERS;
	}
	require(of_user <= NEIGH_ENTRIES / 2 && of_hosts <= NEIGH_ENTRIES / 2);
}

static void check_peer(void)
{
	require(has_neighbour(false) && has_neighbour(true));
	if (net.request.id && net.now >= net.request.sent + QP1_LIMIT)
		expect_peer_is_answered(0);
	if (world_inputs() - last_answer >= PROBES)
		expect_peer_is_answered((uint8_t)(2 | world_inputs() % 2));
	for (int v6 = 0; v6 < 2; v6++)
		if (!net.request.id && net.now - last_probe[v6] > SILENCE)
			expect_peer_is_answered((uint8_t)(2 | v6));
}

/* --- Inputs */

/* Up to 25 s, or in a short input 16 ms. */
static void pass_time(uint8_t how)
{
	uint64_t time = how * QP1_MS * (how & 1 ? 1 : 100);

	if (!is_long())
		time = how * QP1_MS / 16;
	qp1_run(&net, net.now + time, 1 + (how & 0xf0) * 4);
}

/* The third party may answer or not; the host's program accepts, ends IDs, or starts again. */
static void change_programs(uint8_t how)
{
	net.answers = how & 1;
	net.host.accepts = how & 2;
	net.many_macs = how & 4;
	if (how & 8)
		qp1_end_requests(&net.host);
	if (!(how & 16))
		return;
	net.host.cma.now = net.now;
	if (listener)
		cma_destroy_id(listener);
	listener = listener ? NULL : qp1_listen(&net);
}

static void take_step(struct script *in)
{
	uint8_t how;

	switch (script_get8(in) % 16) {
	case 0:
	case 1:
	case 2: flood_requests(in); return;
	case 3:
	case 4:
	case 5: send_message(in); return;
	case 6:
	case 7: claim_address(in); return;
	case 8:
	case 9: use_id(in); return;
	case 10: flood_resolutions(in); return;
	case 11: change_programs(script_get8(in)); return;
	case 12:
	case 13: pass_time(script_get8(in)); return;
	case 14:
		how = script_get8(in);
		if (!net.request.id)
			connect_peer(how & 1);
		return;
	default:
		how = script_get8(in);
		if (world_inputs() - last_answer >= ASKED)
			expect_peer_is_answered(how);
		return;
	}
}

static void run_input(const uint8_t *data, size_t size)
{
	struct script in = {data, size};

	for (int i = 0; in.left && i < STEPS; i++) {
		take_step(&in);
		/* So a step finds room for all of its frames. */
		if (net.n > QP1_ATTACK - BURST_MAX)
			qp1_run(&net, net.now + QP1_MS, LAP);
	}
	check_peer();
	if (world_inputs() % QUOTAS == 0)
		check_quotas();
}

/* --- The world */

static void open_world(void)
{
	qp1_open(&net);
	memset(ids, 0, sizeof(ids));
	last_answer = n_addresses = 0;
	listener = qp1_listen(&net);
	for (int v6 = 0; v6 < 2; v6++) {
		last_probe[v6] = net.now;
		require(qp1_peer_is_answered(&net, v6, QP1_HEARD, 1));
	}
}

static void close_world(void)
{
	expect_peer_is_answered(2);
	for (int i = 0; i < IDS; i++)
		if (ids[i])
			cma_destroy_id(ids[i]);
	if (listener)
		cma_destroy_id(listener);
	qp1_close(&net);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, STEPS * STEP_BYTES, open_world, run_input,
					   close_world};

	world_start(&world, argc, argv);
	return 0;
}
