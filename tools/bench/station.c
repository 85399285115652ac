/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/station.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/netdev.h>
#include <rxe/rxe.h>

#include "bench/endpoint.h"
#include "common/clock.h"

#define BURST       32
#define MTU         4200 /* the path MTU of 4096 with its headers */
#define FRAME_ROOM  (MTU + 18)
#define PD          1
#define KEY         0x75727800
#define QKEY        0x75727865
#define QPN         0x100 /* of the connection */
#define QPN_HELLO   0x101
#define QPN_COUNT   2
#define RECEIVES    64
#define GREETINGS   16 /* receive requests for greetings */
#define IPV6_SOURCE 8  /* offset in the 40 bytes of GRH before a datagram */
#define ALL         (STATION_MEMORY + GREETINGS * URXE_GRH_LEN)

/* Content of a greeting or its answer. */
struct greeting {
	struct urxe_gid from;
	uint32_t token;
};

struct station {
	struct netdev *port;
	struct urxe_dev *dev;
	struct urxe_cq *cq;
	struct urxe_mr *mr;
	struct urxe_qp *hello, *qp;
	uint8_t *memory; /* messages, then received greetings */
	bool listens;
	bool connected;
	struct urxe_gid peer;
	uint32_t token; /* of the connection or of the last greeting */
	uint64_t posted, completed, received;
	uint32_t failed;
	int connect_error; /* errno of the last connect_to; 0: it succeeded, or there was none */
	/* Work that on_complete leaves to answer_messages: a callback must not call the engine. */
	uint32_t echoes[RECEIVES]; /* lengths of the SENDs to answer */
	uint32_t n_echoes;
	struct greeting greetings[GREETINGS];
	uint64_t greeting_recvs[GREETINGS]; /* wr_id of the receive request of each greeting */
	uint32_t n_greetings;
	/* Frames that the port has not accepted yet. */
	struct urxe_frame frames[BURST];
	uint32_t next, n_frames;
	uint8_t room[BURST][FRAME_ROOM];
	uint64_t last_rx; /* time of the last received frame */
};

/* --- Addresses */

/*
 * The prefix of the GIDs: fd00::/8 with "urxe". Packets are RoCEv1: with a packet socket as the
 * port, the kernel's IP stack would see RoCEv2 packets too, and answer each with an ICMP error.
 */
static const uint8_t prefix[8] = {0xfd, 'u', 'r', 'x', 'e'};

/* The prefix, then the MAC as EUI-64 (RFC 4291, appendix A). */
static struct urxe_gid make_gid(const uint8_t mac[6])
{
	struct urxe_gid gid;
	uint8_t *id = gid.raw + sizeof(prefix);

	memcpy(gid.raw, prefix, sizeof(prefix));
	memcpy(id, mac, 3);
	id[0] ^= 2;
	id[3] = 0xff;
	id[4] = 0xfe;
	memcpy(id + 5, mac + 3, 3);
	return gid;
}

static void get_mac(const struct urxe_gid *gid, uint8_t mac[6])
{
	const uint8_t *id = gid->raw + sizeof(prefix);

	memcpy(mac, id, 3);
	mac[0] ^= 2;
	memcpy(mac + 3, id + 5, 3);
}

static bool is_station(const struct urxe_gid *gid)
{
	uint8_t mac[6];
	struct urxe_gid made;

	get_mac(gid, mac);
	made = make_gid(mac);
	return !memcmp(gid, &made, sizeof(made));
}

static struct urxe_path make_path(const struct urxe_gid *gid)
{
	struct urxe_path path = {.dgid = *gid, .hop_limit = 1};

	get_mac(gid, path.dmac);
	return path;
}

/* The path to all nodes of the link, ff02::1. */
static struct urxe_path make_path_to_all(void)
{
	return (struct urxe_path){
		.dgid.raw = {0xff, 2, [15] = 1}, .dmac = {0x33, 0x33, 0, 0, 0, 1}, .hop_limit = 1};
}

/* --- Callbacks of the engine */

static void store_greeting(struct station *s, const struct urxe_wc *wc)
{
	uint32_t i = s->n_greetings;

	/* Below GREETINGS: each greeting used one of the GREETINGS receive requests. */
	s->greeting_recvs[i] = wc->wr_id;
	s->greetings[i].token = wc->imm;
	memcpy(&s->greetings[i].from,
	       s->memory + STATION_MEMORY + wc->wr_id * URXE_GRH_LEN + IPV6_SOURCE,
	       sizeof(struct urxe_gid));
	s->n_greetings++;
}

static bool on_complete(void *cq_ctx, const struct urxe_wc *wc)
{
	struct station *s = cq_ctx;

	if (wc->qpn == QPN_HELLO) {
		if (!wc->status && wc->opcode == URXE_WC_RECV)
			store_greeting(s, wc);
	} else if (wc->status) {
		if (wc->status != URXE_WC_WR_FLUSH_ERR)
			s->failed = wc->status;
	} else if (wc->opcode == URXE_WC_RECV) {
		s->received++;
		s->echoes[s->n_echoes++] = wc->byte_len;
	} else {
		s->completed++;
	}
	return true;
}

static void on_comp_event(void *cq_ctx)
{
	(void)cq_ctx; /* the queue is never armed */
}

static void on_refill(void *rq_ctx)
{
	(void)rq_ctx; /* answer_messages posts receive requests */
}

/* Ignores the event: completions report the errors of a connection. */
static void on_async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	(void)dev_ctx, (void)event, (void)obj_ctx;
}

static const struct urxe_ops ops = {
	.complete = on_complete,
	.comp_event = on_comp_event,
	.refill = on_refill,
	.async_event = on_async_event,
};

/* --- Creation and destruction */

static int create_device(struct station *s)
{
	uint32_t mtu = netdev_mtu(s->port);
	struct urxe_dev_attr attr = {.ctx = s,
				     .ops = &ops,
				     .mtu = mtu < MTU ? mtu : MTU,
				     .qpn_first = QPN,
				     .qpn_count = QPN_COUNT};
	struct urxe_gid gid;
	int rc;

	endpoint_mac(s->port, attr.mac);
	rc = urxe_dev_create(&attr, &s->dev);
	if (rc)
		return rc;
	gid = make_gid(attr.mac);
	return urxe_gid_set(s->dev, 0, &gid, true);
}

static int create_objects(struct station *s)
{
	const struct urxe_extent extent = {s->memory, ALL};
	const struct urxe_mr_attr mr = {.pd = PD,
					.access =
						URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE,
					.length = ALL,
					.extents = &extent,
					.n_extents = 1,
					.key = KEY};
	struct urxe_qp_init init = {.type = URXE_QPT_UD,
				    .pd = PD,
				    .qpn = QPN_HELLO,
				    .sq_sig_all = true,
				    .cap = {.max_send_wr = GREETINGS,
					    .max_recv_wr = GREETINGS,
					    .max_send_sge = 1,
					    .max_recv_sge = 1}};
	int rc = urxe_mr_reg(s->dev, &mr, &s->mr);

	if (!rc)
		rc = urxe_cq_create(s->dev, s, &s->cq);
	init.send_cq = init.recv_cq = s->cq;
	if (!rc)
		rc = urxe_qp_create(s->dev, &init, &s->hello);
	init.type = URXE_QPT_RC;
	init.qpn = QPN;
	init.cap.max_send_wr = STATION_SENDS;
	init.cap.max_recv_wr = RECEIVES;
	return rc ? rc : urxe_qp_create(s->dev, &init, &s->qp);
}

static int post_greeting_recv(struct station *s, uint64_t i)
{
	const struct urxe_seg seg = {STATION_MEMORY + i * URXE_GRH_LEN, URXE_GRH_LEN, KEY};
	const struct urxe_recv_wr wr = {.wr_id = i, .n_segs = 1, .segs = &seg};

	return urxe_post_recv(urxe_qp_rq(s->hello), &wr);
}

static int start_hello(struct station *s)
{
	const struct urxe_path all = make_path_to_all();
	struct urxe_qp_attr attr = {.state = URXE_QPS_INIT, .port = 1, .qkey = QKEY};
	int rc = urxe_qp_modify(s->hello, 0, &attr,
				URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY);

	attr.state = URXE_QPS_RTR;
	if (!rc)
		rc = urxe_qp_modify(s->hello, 0, &attr, URXE_QP_STATE);
	attr.state = URXE_QPS_RTS;
	if (!rc)
		rc = urxe_qp_modify(s->hello, 0, &attr, URXE_QP_STATE | URXE_QP_SQ_PSN);
	for (uint64_t i = 0; i < GREETINGS && !rc; i++)
		rc = post_greeting_recv(s, i);
	if (!rc && s->listens)
		rc = urxe_mcast_attach(s->hello, &all.dgid) ?: netdev_add_group(s->port, all.dmac);
	return rc;
}

int station_create(struct netdev *port, bool listens, struct station **station)
{
	struct station *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s) {
		netdev_close(port);
		return rc;
	}
	s->port = port;
	s->listens = listens;
	s->last_rx = now_ns();
	s->memory = calloc(1, ALL);
	if (s->memory)
		rc = create_device(s);
	if (!rc)
		rc = create_objects(s);
	if (!rc)
		rc = start_hello(s);
	if (rc)
		station_destroy(s);
	else
		*station = s;
	return rc;
}

void station_destroy(struct station *s)
{
	if (s->dev)
		urxe_dev_destroy(s->dev);
	netdev_close(s->port);
	free(s->memory);
	free(s);
}

/* --- Connections */

static int post_recv(struct station *s)
{
	const struct urxe_seg seg = {0, STATION_MEMORY, KEY};
	const struct urxe_recv_wr wr = {.n_segs = 1, .segs = &seg};

	return urxe_post_recv(urxe_qp_rq(s->qp), &wr);
}

static int modify_qp(struct station *s, struct urxe_qp_attr *attr, uint8_t state, uint32_t mask)
{
	attr->state = state;
	return urxe_qp_modify(s->qp, now_ns(), attr, URXE_QP_STATE | mask);
}

static uint8_t get_path_mtu(const struct station *s)
{
	uint32_t mtu = netdev_mtu(s->port), bytes = urxe_max_path_mtu(mtu < MTU ? mtu : MTU);
	uint8_t value = URXE_MTU_256;

	while (value < URXE_MTU_4096 && 128u << (value + 1) <= bytes)
		value++;
	return value;
}

static int connect_to(struct station *s, const struct greeting *greeting)
{
	struct urxe_qp_attr attr = {.port = 1,
				    .access = URXE_ACCESS_REMOTE_WRITE,
				    .path = make_path(&greeting->from),
				    .path_mtu = get_path_mtu(s),
				    .dest_qpn = QPN,
				    .min_rnr_timer = 12,
				    .timeout = 18,
				    .retry_cnt = 7,
				    .rnr_retry = 7};
	int rc = modify_qp(s, &attr, URXE_QPS_RESET, 0);

	s->connected = false;
	s->n_echoes = 0;
	s->posted = s->completed;
	if (!rc)
		rc = modify_qp(s, &attr, URXE_QPS_INIT,
			       URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS);
	for (int i = 0; i < RECEIVES && !rc; i++)
		rc = post_recv(s);
	if (!rc)
		rc = modify_qp(s, &attr, URXE_QPS_RTR,
			       URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
				       URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER);
	if (!rc)
		rc = modify_qp(s, &attr, URXE_QPS_RTS,
			       URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				       URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC);
	s->connected = !rc;
	s->connect_error = -rc;
	s->peer = greeting->from;
	s->token = greeting->token;
	return rc;
}

/* Sends a greeting, or the answer to one, with the token. A failed post counts as lost: the
 * connecting station repeats its greeting. */
static void send_greeting(struct station *s, const struct urxe_path *path, uint32_t qpn)
{
	const struct urxe_send_wr wr = {.opcode = URXE_WR_SEND_IMM,
					.imm = s->token,
					.path = path,
					.remote_qpn = qpn,
					.remote_qkey = QKEY};

	urxe_post_send(s->hello, &wr);
}

void station_greet(struct station *s)
{
	const struct urxe_path all = make_path_to_all();

	/* 0 means no token. */
	s->token = (uint32_t)now_ns() | 1;
	send_greeting(s, &all, URXE_QPN_MULTICAST);
}

static void handle_greeting(struct station *s, const struct greeting *greeting)
{
	bool again =
		s->token == greeting->token && !memcmp(&s->peer, &greeting->from, sizeof(s->peer));
	struct urxe_path path;

	if (!is_station(&greeting->from))
		return;
	if (!s->listens) {
		if (!s->connected && greeting->token == s->token)
			connect_to(s, greeting);
		return;
	}
	if ((again && s->connected) || !connect_to(s, greeting)) {
		path = make_path(&greeting->from);
		send_greeting(s, &path, QPN_HELLO);
	}
}

bool station_connected(const struct station *s)
{
	return s->connected;
}

int station_connect_error(const struct station *s)
{
	return s->connect_error;
}

uint32_t station_failed(const struct station *s)
{
	return s->failed;
}

/* --- Messages */

static int post_request(struct station *s, uint32_t opcode, uint32_t length)
{
	const struct urxe_seg seg = {0, length, KEY};
	const struct urxe_send_wr wr = {.opcode = opcode, .n_segs = 1, .segs = &seg, .rkey = KEY};

	int rc = urxe_post_send(s->qp, &wr);

	s->posted += !rc;
	return rc;
}

int station_send(struct station *s, uint32_t length)
{
	return post_request(s, URXE_WR_SEND, length);
}

int station_write(struct station *s, uint32_t length)
{
	return post_request(s, URXE_WR_RDMA_WRITE, length);
}

uint64_t station_completed(const struct station *s)
{
	return s->completed;
}

uint64_t station_outstanding(const struct station *s)
{
	return s->posted - s->completed;
}

uint64_t station_received(const struct station *s)
{
	return s->received;
}

/* --- Frames */

static void receive_frames(struct station *s, uint64_t now)
{
	struct netdev_frame frames[BURST];
	struct urxe_frame in[BURST];
	uint32_t n = netdev_rx(s->port, now, frames, BURST);

	for (uint32_t i = 0; i < n; i++)
		in[i] = (struct urxe_frame){.data = (uint8_t *)(uintptr_t)frames[i].data,
					    .len = frames[i].len};
	urxe_input(s->dev, now, in, n);
	if (n)
		s->last_rx = now;
}

/* Sends the frames that the port has not accepted yet. True: the port has accepted all. */
static bool send_pending_frames(struct station *s, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = s->n_frames - s->next;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct netdev_frame){.data = s->frames[s->next + i].data,
						  .len = s->frames[s->next + i].len};
	if (n)
		s->next += netdev_tx(s->port, now, frames, n);
	return s->next == s->n_frames;
}

static void send_frames(struct station *s, uint64_t now)
{
	while (send_pending_frames(s, now) && urxe_next_deadline(s->dev) <= now) {
		for (uint32_t i = 0; i < BURST; i++)
			s->frames[i] = (struct urxe_frame){.data = s->room[i], .room = FRAME_ROOM};
		s->next = 0;
		s->n_frames = urxe_output(s->dev, now, s->frames, BURST);
		if (!s->n_frames)
			break;
	}
}

static void answer_messages(struct station *s)
{
	for (uint32_t i = 0; i < s->n_greetings; i++) {
		handle_greeting(s, &s->greetings[i]);
		post_greeting_recv(s, s->greeting_recvs[i]);
	}
	s->n_greetings = 0;
	for (uint32_t i = 0; i < s->n_echoes; i++) {
		post_recv(s);
		if (s->listens)
			station_send(s, s->echoes[i]);
	}
	s->n_echoes = 0;
}

void station_turn(struct station *s)
{
	uint64_t now = now_ns();

	receive_frames(s, now);
	answer_messages(s);
	send_frames(s, now);
	if (s->listens && endpoint_quiet(s->last_rx, now) &&
	    urxe_next_deadline(s->dev) > now + ENDPOINT_NAP_NS)
		endpoint_nap();
}
