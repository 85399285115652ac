/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Congestion: a receiver answers ECN marks with CNPs, a CNP slows its QP by the rules of DCQCN, and
 * a slow QP does not delay other QPs.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "engine.h"
#include "rand.h"

#define US   1000ull
#define MS   1000000ull
#define GBPS 1000000000ull
#define LINK (25 * GBPS)

#define OPCODE_CNP 0x81
#define ECT0       2
#define ECN_CE     3

/* Traffic class that NICs put into a CNP: DSCP 48, ECT(0). */
#define CNP_TRAFFIC_CLASS 0xc2
#define CNP_INTERVAL      (50 * US)
/* A CNP that comes sooner after another one does not cut the rate. */
#define CUT_INTERVAL (25 * US)

#define FRAME_ROOM 4300

struct world {
	struct engine e;
	struct conn_attr conn;
};

static const uint8_t payload[64];

static void open_world(struct world *w, const struct conn_attr *conn, const struct pair_attr *attr)
{
	struct pair_attr pair = *attr;

	pair.seed = 1;
	w->conn = *conn;
	w->e.pair = pair_create(&pair);
	w->e.a = w->e.pair->node[0];
	w->e.b = w->e.pair->node[1];
	conn_open(w->e.pair, conn, w->e.end);
}

static void open_default(struct world *w, enum urxe_qp_type type, enum urxe_net net)
{
	struct conn_attr conn = conn_default(type);

	conn.net = (uint8_t)net;
	conn.path_mtu = URXE_MTU_4096;
	open_world(w, &conn, &(struct pair_attr){.link_bps = LINK});
}

static void close_world(struct world *w)
{
	engine_close(&w->e);
}

/* --- Frames that the test builds. */

/* A packet from node `from`'s QP to the other node's QP. */
static struct urxe_packet packet(const struct world *w, unsigned from, uint8_t opcode)
{
	struct urxe_packet p = {
		.net = w->conn.net,
		.hop_limit = 64,
		.udp_sport = w->conn.net == URXE_NET_ROCEV1 ? 0 : 0xc123,
		.sgid = craft_gid(w->conn.net, (uint8_t)(from + 1)),
		.dgid = craft_gid(w->conn.net, (uint8_t)(!from + 1)),
		.opcode = opcode,
		.pkey = 0xffff,
		.mig_req = true,
		.dest_qpn = w->e.end[!from].qpn,
		.psn = w->conn.psn[from],
		.deth = {w->conn.qkey, w->e.end[from].qpn},
	};

	memcpy(p.smac, w->e.end[from].node->mac, 6);
	memcpy(p.dmac, w->e.end[!from].node->mac, 6);
	return p;
}

static struct urxe_packet cnp_packet(const struct world *w, unsigned from)
{
	struct urxe_packet p = packet(w, from, OPCODE_CNP);

	p.traffic_class = w->conn.net == URXE_NET_ROCEV1 ? 0 : CNP_TRAFFIC_CLASS;
	p.udp_sport = 0;
	p.mig_req = false;
	p.becn = true;
	p.psn = 0;
	p.payload = payload;
	p.payload_len = 16;
	return p;
}

static void inject(struct world *w, unsigned to, const struct urxe_packet *p)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {data, craft_frame(data, p), sizeof(data)};

	urxe_input(w->e.pair->node[to]->dev, w->e.pair->now, &frame, 1);
}

static void inject_cnp(struct world *w, unsigned to)
{
	struct urxe_packet p = cnp_packet(w, !to);

	inject(w, to, &p);
}

/* Node `to` gets n CNPs, each of which cuts its rate; the last one comes now. */
static void cut_rate(struct world *w, unsigned to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		w->e.pair->now += CUT_INTERVAL;
		inject_cnp(w, to);
	}
}

/* Node 0 sends a marked SEND, which node 1's QP drops because it has no receive request. */
static void inject_marked(struct world *w)
{
	static const uint8_t opcodes[] = {
		[URXE_QPT_RC] = 0x04, [URXE_QPT_UC] = 0x24, [URXE_QPT_UD] = 0x64};
	struct urxe_packet p = packet(w, 0, opcodes[w->conn.type]);

	p.traffic_class = ECN_CE;
	inject(w, 1, &p);
}

/*
 * Takes one frame that the node sends at this instant. Returns the length, 0 if there is no frame.
 */
static uint32_t take(struct world *w, unsigned side, uint8_t data[FRAME_ROOM])
{
	struct urxe_frame frame = {data, 0, FRAME_ROOM};

	return urxe_output(w->e.pair->node[side]->dev, w->e.pair->now, &frame, 1) ? frame.len : 0;
}

/* Counts the CNPs that node 1 sends at this instant, and drops its other packets. */
static unsigned take_cnps(struct world *w)
{
	uint8_t data[FRAME_ROOM];
	struct urxe_packet p;
	unsigned n = 0;
	uint32_t len;

	while ((len = take(w, 1, data))) {
		assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
		n += p.opcode == OPCODE_CNP;
	}
	return n;
}

/* --- The receiver: ECN marks become CNPs. */

static void check_cnp(enum urxe_qp_type type, enum urxe_net net)
{
	uint8_t data[FRAME_ROOM], wanted[CRAFT_MAX];
	struct urxe_packet p;
	struct world w;
	uint32_t len;

	open_default(&w, type, net);
	inject_marked(&w);
	p = cnp_packet(&w, 1);
	len = craft_frame(wanted, &p);
	assert_int_equal(take(&w, 1, data), len);
	assert_memory_equal(data, wanted, len);
	assert_int_equal(events(w.e.b, URXE_EVENT_ECN_MARKED), 1);
	assert_int_equal(events(w.e.b, URXE_EVENT_CNP_SENT), 1);
	close_world(&w);
}

static void test_cnp_has_the_specified_bytes(void **state)
{
	(void)state;
	for (int type = URXE_QPT_RC; type <= URXE_QPT_UD; type++) {
		check_cnp(type, URXE_NET_IPV4);
		check_cnp(type, URXE_NET_IPV6);
	}
}

/* RoCEv1 has a traffic class without an ECN field. */
static void test_rocev1_has_no_ecn_and_causes_no_cnp(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_ROCEV1);
	inject_marked(&w);
	assert_int_equal(take_cnps(&w), 0);
	assert_int_equal(events(w.e.b, URXE_EVENT_ECN_MARKED), 0);
	post_send(&w.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	assert_true(take(&w, 0, data));
	assert_int_equal(data[14] & 15, 0);
	assert_int_equal(data[15] >> 4, 0);
	close_world(&w);
}

static void test_cnps_keep_their_interval(void **state)
{
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	inject_marked(&w);
	assert_int_equal(take_cnps(&w), 1);
	w.e.pair->now += CNP_INTERVAL - 1;
	inject_marked(&w);
	assert_int_equal(take_cnps(&w), 0);
	w.e.pair->now++;
	assert_int_equal(take_cnps(&w), 0); /* no mark arrived since */
	inject_marked(&w);
	inject_marked(&w);
	assert_int_equal(take_cnps(&w), 1);
	assert_int_equal(events(w.e.b, URXE_EVENT_ECN_MARKED), 4);
	close_world(&w);
}

static void mark_all(struct world *w, const struct endpoint *ends, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		w->e.end[1].qpn = ends[i].qpn;
		inject_marked(w);
	}
}

/* Marks for more QPs than a device can answer in one interval. */
static void test_marks_for_many_qps_are_bounded(void **state)
{
	enum { QPS = 300, MOST = 256 };
	static struct endpoint ends[QPS];
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct world w;

	(void)state;
	conn.cap.max_send_wr = conn.cap.max_recv_wr = 1;
	open_world(&w, &conn, &(struct pair_attr){0});
	for (unsigned i = 0; i < QPS; i++) {
		conn_create(w.e.pair, &conn, 1, &ends[i]);
		conn_bring_up(w.e.pair, &conn, 1, &ends[i], &w.e.end[0]);
	}
	w.e.pair->now += CNP_INTERVAL;
	mark_all(&w, ends, QPS);
	assert_int_equal(take_cnps(&w), MOST);
	assert_int_equal(events(w.e.b, URXE_EVENT_CNP_WITHHELD), QPS - MOST);
	w.e.pair->now += CNP_INTERVAL;
	mark_all(&w, ends + MOST, QPS - MOST); /* QPs without a CNP in this interval get one */
	assert_int_equal(take_cnps(&w), QPS - MOST);
	close_world(&w);
}

static void test_marked_cnp_is_not_answered(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	p = cnp_packet(&w, 0);
	p.traffic_class = ECN_CE;
	inject(&w, 1, &p);
	assert_int_equal(take_cnps(&w), 0);
	assert_int_equal(events(w.e.b, URXE_EVENT_CNP_RCVD), 1);
	close_world(&w);
}

/* After a reset, a QP sends no CNP for earlier marks. */
static void test_reset_owes_no_cnp(void **state)
{
	struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	inject_marked(&w);
	assert_int_equal(urxe_qp_modify(w.e.end[1].qp, w.e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(take_cnps(&w), 0);
	close_world(&w);
}

static void expect_drop(struct world *w, const struct urxe_packet *p, enum urxe_drop drop)
{
	uint64_t before = drops(w->e.a, drop);

	inject(w, 0, p);
	assert_int_equal(drops(w->e.a, drop), before + 1);
	assert_int_equal(events(w->e.a, URXE_EVENT_CNP_RCVD), 0);
	assert_int_equal(events(w->e.a, URXE_EVENT_RATE_CUT), 0);
}

static void test_bad_cnps_are_dropped(void **state)
{
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_RC, URXE_NET_IPV4);
	p = cnp_packet(&w, 1);
	p.becn = false;
	expect_drop(&w, &p, URXE_DROP_BAD_CNP);
	p = cnp_packet(&w, 1);
	p.payload_len = 12;
	expect_drop(&w, &p, URXE_DROP_BAD_LENGTH);
	p.payload_len = 20;
	expect_drop(&w, &p, URXE_DROP_BAD_LENGTH);
	p = cnp_packet(&w, 1);
	p.dest_qpn ^= 0x800;
	expect_drop(&w, &p, URXE_DROP_BAD_QPN);
	p = cnp_packet(&w, 1);
	p.sgid.raw[15] ^= 1;
	expect_drop(&w, &p, URXE_DROP_BAD_SGID);
	close_world(&w);
}

/* --- The sender: ECT in its packets, and its rate after CNPs. */

static void test_ecn_bits_depend_on_congestion_control(void **state)
{
	static const struct {
		uint8_t congestion, given, sent;
	} rows[] = {
		{URXE_CONGESTION_DCQCN, 0x28, 0x28 | ECT0},
		{URXE_CONGESTION_DCQCN, 0x28 | ECN_CE, 0x28 | ECT0},
		{URXE_CONGESTION_NONE, 0x28, 0x28},
		{URXE_CONGESTION_NONE, 0x28 | ECT0, 0x28},
	};
	uint8_t data[FRAME_ROOM];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_UD);
		struct world w;
		struct urxe_path path;
		struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .path = &path};

		open_world(&w, &conn, &(struct pair_attr){.congestion = rows[i].congestion});
		path = conn_path(URXE_NET_IPV4, w.e.b);
		path.traffic_class = rows[i].given;
		wr.remote_qpn = w.e.end[1].qpn;
		assert_int_equal(urxe_post_send(w.e.end[0].qp, &wr), 0);
		assert_true(take(&w, 0, data));
		assert_int_equal(data[15], rows[i].sent);
		close_world(&w);
	}
}

static void test_no_congestion_control_sends_and_obeys_no_cnp(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_world(&w, &conn, &(struct pair_attr){.congestion = URXE_CONGESTION_NONE});
	inject_marked(&w);
	assert_int_equal(events(w.e.b, URXE_EVENT_ECN_MARKED), 1);
	assert_int_equal(take_cnps(&w), 0);
	inject_cnp(&w, 0);
	assert_int_equal(events(w.e.a, URXE_EVENT_CNP_RCVD), 1);
	assert_int_equal(events(w.e.a, URXE_EVENT_RATE_CUT), 0);
	post_send(&w.e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 1 << 18});
	for (unsigned i = 0; i < (1 << 18) / 1024; i++)
		assert_true(take(&w, 0, data)); /* all at once */
	assert_false(take(&w, 0, data));
	close_world(&w);
}

static void post_write(struct world *w, unsigned side)
{
	post_send(&w->e, side, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 1 << 20});
}

/* Waits for the side's next frame; returns its length. */
static uint32_t wait_frame(struct world *w, unsigned side)
{
	uint8_t data[FRAME_ROOM];
	uint32_t len;

	for (unsigned i = 0; i < 3; i++) {
		uint64_t next;

		len = take(w, side, data);
		if (len)
			return len;
		next = urxe_next_deadline(w->e.pair->node[side]->dev);
		assert_true(next > w->e.pair->now && next != URXE_NEVER);
		w->e.pair->now = next;
	}
	fail_msg("deadlines pass without a frame");
	return 0;
}

/* The rate in bits/s at which the second next frame follows the next one. */
static double next_rate(struct world *w, unsigned side)
{
	uint32_t len = wait_frame(w, side);
	uint64_t from = w->e.pair->now;

	wait_frame(w, side);
	return len * 8e9 / (double)(w->e.pair->now - from);
}

static void expect_rate(double rate, double wanted)
{
	if (fabs(rate - wanted) > wanted / 200)
		fail_msg("%.0f bits/s, not %.0f", rate, wanted);
}

static void test_first_cnp_cuts_the_link_rate(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	post_write(&w, 0);
	assert_true(take(&w, 0, data));
	assert_true(take(&w, 0, data)); /* no limit of the rate so far */
	inject_cnp(&w, 0);
	assert_int_equal(events(w.e.a, URXE_EVENT_RATE_CUT), 1);
	expect_rate(next_rate(&w, 0), LINK / 2.0);
	cut_rate(&w, 0, 1); /* alpha is still 1 */
	while (take(&w, 0, data))
		;
	expect_rate(next_rate(&w, 0), LINK / 4.0);
	close_world(&w);
}

/* Anybody may send many CNPs to a UD QP. */
static void test_flood_of_cnps_cuts_the_rate_once(void **state)
{
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UD, URXE_NET_IPV4);
	for (unsigned i = 0; i < 40; i++)
		inject_cnp(&w, 0);
	assert_int_equal(events(w.e.a, URXE_EVENT_CNP_RCVD), 40);
	assert_int_equal(events(w.e.a, URXE_EVENT_RATE_CUT), 1);
	cut_rate(&w, 0, 1);
	assert_int_equal(events(w.e.a, URXE_EVENT_RATE_CUT), 2);
	close_world(&w);

	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	post_write(&w, 0);
	for (unsigned i = 0; i < 40; i++)
		inject_cnp(&w, 0);
	expect_rate(next_rate(&w, 0), LINK / 2.0);
	close_world(&w);
}

static void test_unknown_link_rate_has_a_default(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct world w;

	(void)state;
	conn.path_mtu = URXE_MTU_4096;
	open_world(&w, &conn, &(struct pair_attr){0});
	post_write(&w, 0);
	inject_cnp(&w, 0);
	expect_rate(next_rate(&w, 0), 50.0 * GBPS);
	close_world(&w);
}

/*
 * DCQCN as in the paper, with real numbers and timers that fire, and with the engine's changes for
 * slow links. The engine uses integers and makes the steps when it needs the rate; the test
 * compares both.
 */
struct model {
	const struct urxe_dcqcn *p;
	double rc, rt, alpha, bytes, len;
	double alpha_at, increase_at, raise_at, cut_at;
	unsigned t, bc;
	bool limited;
};

static double model_interval(const struct model *m, double least)
{
	return fmax(m->limited ? m->len * 8e9 / m->rc : 0, least);
}

static double model_step(const struct model *m)
{
	double period = m->p->increase_ns, step = m->len * 8e9 / 32 / period;

	step = fmin(step * floor(model_interval(m, period) * 16 / period) / 16, m->rt / 2);
	return m->t < 256 ? fmin(step, m->p->ai_bps) : m->p->ai_bps;
}

static double model_weight(const struct model *m)
{
	double times = floor(model_interval(m, m->p->alpha_ns) / m->p->alpha_ns);
	double g = pow(2, -m->p->g_shift);

	for (; times > 1 && g < 1.0 / 64; times = floor(times / 2))
		g *= 2;
	return g;
}

static void model_increase(struct model *m)
{
	unsigned least = m->t < m->bc ? m->t : m->bc, most = m->t > m->bc ? m->t : m->bc;

	if (least > m->p->f)
		m->rt += m->p->hai_bps;
	else if (most > m->p->f)
		m->rt += model_step(m);
	m->rt = fmin(m->rt, LINK);
	m->rc = (m->rc + m->rt) / 2;
	if (LINK - m->rc <= LINK / 256.0)
		m->limited = false;
}

static void model_time(struct model *m, double now)
{
	while (m->alpha_at <= now) {
		m->alpha *= 1 - model_weight(m);
		m->alpha_at += model_interval(m, m->p->alpha_ns);
	}
	while (m->limited && m->increase_at <= now) {
		m->t++;
		model_increase(m);
		m->increase_at += model_interval(m, m->p->increase_ns);
	}
}

static void model_cnp(struct model *m, double now)
{
	model_time(m, now);
	if (m->cut_at <= now) {
		m->rt = m->limited ? m->rc : LINK;
		m->rc = fmax(m->rt * (1 - m->alpha / 2), (double)m->p->min_bps);
		m->cut_at = now + CUT_INTERVAL;
	}
	m->limited = true;
	m->alpha_at = now + model_interval(m, m->p->alpha_ns);
	if (m->raise_at <= now) {
		m->alpha += (1 - m->alpha) * model_weight(m);
		m->raise_at = m->alpha_at;
	}
	m->increase_at = now + model_interval(m, m->p->increase_ns);
	m->t = m->bc = 0;
	m->bytes = 0;
}

/* Returns the time when the next packet may leave. */
static double model_sent(struct model *m, double now, uint32_t len)
{
	m->len = len;
	model_time(m, now);
	m->bytes += len;
	if (m->limited && m->bytes >= m->p->increase_size) {
		m->bytes = 0;
		m->bc++;
		model_increase(m);
	}
	return m->limited ? now + len * 8e9 / m->rc : now;
}

/* Sends without a pause until the rate is the link's again, with random CNPs at first. */
static void follow_model(const struct urxe_dcqcn *params, uint64_t seed, unsigned cnps)
{
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct model m = {.p = params, .alpha = 1, .alpha_at = INFINITY};
	struct rand rand = {seed};
	double due;
	unsigned packets = 0;
	struct world w;

	conn.path_mtu = URXE_MTU_4096;
	open_world(&w, &conn, &(struct pair_attr){.link_bps = LINK, .dcqcn = params});
	do {
		uint64_t from;
		uint32_t len;

		if (packets % 256 == 0)
			post_write(&w, 0);
		if (cnps && (!packets || rand_below(&rand, 100) == 0)) {
			inject_cnp(&w, 0);
			model_cnp(&m, (double)w.e.pair->now);
			cnps--;
		}
		len = wait_frame(&w, 0);
		from = w.e.pair->now;
		due = model_sent(&m, (double)from, len);
		packets++;
		if (packets % 256 == 0)
			post_write(&w, 0);
		if (m.limited) {
			/*
			 * The time until the next frame gives the rate; the loop takes the same
			 * frame again.
			 */
			uint64_t next;

			assert_false(take(&w, 0, (uint8_t[FRAME_ROOM]){0}));
			next = urxe_next_deadline(w.e.a->dev);
			if (fabs((double)(next - from) - (due - (double)from)) >
			    2 + (due - (double)from) / 100)
				fail_msg("packet %u: after %llu ns, not %.0f", packets,
					 (unsigned long long)(next - from), due - (double)from);
		}
		assert_true(packets < 2000000);
	} while (cnps || m.limited);
	close_world(&w);
}

static void test_rate_follows_dcqcn_model(void **state)
{
	(void)state;
	follow_model(&urxe_dcqcn_default, 1, 1);
	follow_model(&urxe_dcqcn_default, 2, 30);
}

/* A byte counter with a small threshold leads to hyper increase. */
static void test_byte_counter_leads_to_hyper_increase(void **state)
{
	struct urxe_dcqcn params = urxe_dcqcn_default;

	(void)state;
	params.increase_size = 100000;
	params.g_shift = 4;
	params.f = 2;
	follow_model(&params, 3, 20);
}

static void test_idle_qp_recovers_its_rate(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	cut_rate(&w, 0, 20);
	assert_false(take(&w, 0, data));
	assert_int_equal(urxe_next_deadline(w.e.a->dev),
			 URXE_NEVER); /* the engine has set no timer */
	w.e.pair->now += 1000 * MS;
	post_write(&w, 0);
	for (unsigned i = 0; i < 256; i++)
		assert_true(take(&w, 0, data));
	close_world(&w);
}

static void test_rate_has_a_minimum(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	cut_rate(&w, 0, 100);
	post_write(&w, 0);
	while (take(&w, 0, data))
		; /* the time of the CNPs is made up for */
	expect_rate(next_rate(&w, 0), urxe_dcqcn_default.min_bps * 1.0);
	close_world(&w);
}

static void test_reset_forgets_rate(void **state)
{
	struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	post_write(&w, 0);
	inject_cnp(&w, 0);
	wait_frame(&w, 0);
	assert_false(take(&w, 0, data));
	assert_int_equal(urxe_qp_modify(w.e.end[0].qp, w.e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(urxe_output(w.e.a->dev, w.e.pair->now + MS, NULL, 0), 0);
	assert_int_equal(urxe_next_deadline(w.e.a->dev), URXE_NEVER);
	conn_bring_up(w.e.pair, &w.conn, 0, &w.e.end[0], &w.e.end[1]);
	post_write(&w, 0);
	assert_true(take(&w, 0, data));
	assert_true(take(&w, 0, data));
	close_world(&w);
}

/* --- Rates of several QPs. */

/*
 * A QP that waits for its rate does not delay a QP that does not wait, and does not keep the engine
 * awake.
 */
static void test_slow_qp_does_not_delay_others(void **state)
{
	struct endpoint fast[2];
	uint8_t data[FRAME_ROOM];
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	conn_open(w.e.pair, &w.conn, fast);
	cut_rate(&w, 0, 10);
	post_write(&w, 0);
	wait_frame(&w, 0);
	assert_false(take(&w, 0, data));
	assert_true(urxe_next_deadline(w.e.a->dev) > w.e.pair->now + US);
	w.e.end[0] = fast[0];
	post_write(&w, 0);
	assert_int_equal(urxe_next_deadline(w.e.a->dev), 0);
	for (unsigned i = 0; i < 256; i++) {
		uint32_t len = take(&w, 0, data);

		assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
		assert_int_equal(p.dest_qpn, fast[1].qpn);
	}
	assert_false(take(&w, 0, data));
	wait_frame(&w, 0); /* the slow QP may send its next packet */
	close_world(&w);
}

/*
 * The caller runs the engine late: the mean rate stays, and a long absence is followed by no burst.
 */
static void test_late_calls_keep_the_mean_rate(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	cut_rate(&w, 0, 3); /* 3.125 Gb/s, about 10.6 us for a packet */
	post_write(&w, 0);
	assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data));
	w.e.pair->now += 45 * US;
	for (unsigned i = 0; i < 4; i++)
		assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data));
	w.e.pair->now += 10 * MS;
	assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data));
	close_world(&w);
}

/* READ responses obey the rate, too: a responder sends most of its bytes in them. */
static void test_read_responses_obey_the_rate(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct urxe_packet p;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_RC, URXE_NET_IPV4);
	inject_cnp(&w, 1);
	p = packet(&w, 0, 0x0c); /* READ request */
	p.reth.va = w.e.b->iova;
	p.reth.rkey = w.e.b->key;
	p.reth.length = 1 << 18;
	inject(&w, 1, &p);
	expect_rate(next_rate(&w, 1), LINK / 2.0);
	assert_false(take(&w, 1, data));
	close_world(&w);
}

/* Packets that wait for the rate do not count as lost. */
static void test_rate_limited_packets_cause_no_timeout(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct world w;

	(void)state;
	conn.path_mtu = URXE_MTU_4096;
	conn.timeout = 6; /* a quarter of the time for one packet at 10 Mb/s */
	open_world(&w, &conn, &(struct pair_attr){.link_bps = LINK});
	cut_rate(&w, 0, 100);
	post_write(&w, 0);
	pair_settle(w.e.pair);
	expect_wc(&w.e.a->send_cq, 0, URXE_WC_SUCCESS);
	assert_int_equal(events(w.e.a, URXE_EVENT_TIMEOUT), 0);
	assert_int_equal(events(w.e.a, URXE_EVENT_RETRANSMIT), 0);
	close_world(&w);
}

/* --- The rate limit that the application sets. */

static int limit(struct world *w, uint32_t kbps)
{
	const struct urxe_qp_attr attr = {.rate_limit = kbps};

	return urxe_qp_modify(w->e.end[0].qp, w->e.pair->now, &attr, URXE_QP_RATE_LIMIT);
}

static void test_rate_limit_is_obeyed(void **state)
{
	uint8_t data[FRAME_ROOM];
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	assert_int_equal(limit(&w, 1000000), 0);
	urxe_qp_query(w.e.end[0].qp, &attr, &init);
	assert_int_equal(attr.rate_limit, 1000000);
	post_write(&w, 0);
	expect_rate(next_rate(&w, 0), 1.0 * GBPS);
	inject_cnp(&w, 0); /* the rate after the CNP is 12.5 Gb/s, more than the limit */
	wait_frame(&w, 0);
	expect_rate(next_rate(&w, 0), 1.0 * GBPS);
	assert_int_equal(limit(&w, 1), 0);
	wait_frame(&w, 0);
	w.e.pair->now += 30000 * MS; /* 4 KiB take longer than this at 1 kb/s */
	assert_false(take(&w, 0, data));
	assert_int_equal(limit(&w, UINT32_MAX), 0); /* a wait for the old limit ends */
	assert_true(take(&w, 0, data));
	w.e.pair->now += 1000 * MS; /* DCQCN has recovered */
	assert_int_equal(limit(&w, 0), 0);
	assert_true(take(&w, 0, data));
	assert_true(take(&w, 0, data));
	close_world(&w);
}

/* At a slow rate, a call that is late by less than the time of four packets costs no time either.
 */
static void test_late_calls_keep_a_slow_rate(void **state)
{
	uint8_t data[FRAME_ROOM];
	uint64_t gap, due;
	struct world w;

	(void)state;
	open_default(&w, URXE_QPT_UC, URXE_NET_IPV4);
	assert_int_equal(limit(&w, 24000), 0);
	post_write(&w, 0);
	assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data));
	due = urxe_next_deadline(w.e.a->dev);
	gap = due - w.e.pair->now;
	assert_true(gap > 300 * US);
	w.e.pair->now = due + gap * 7 / 2;
	for (unsigned i = 0; i < 4; i++)
		assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data));
	assert_in_range(urxe_next_deadline(w.e.a->dev), due + 4 * gap - gap / 20,
			due + 4 * gap + gap / 20);
	w.e.pair->now += 6 * gap;
	assert_true(take(&w, 0, data));
	assert_false(take(&w, 0, data)); /* no burst after a longer pause */
	close_world(&w);
}

/* The rate limit holds from the transition to RTS, and a reset removes it. */
static void test_rate_limit_from_rts(void **state)
{
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct urxe_qp_attr attr;
	uint8_t data[FRAME_ROOM];
	struct world w;

	(void)state;
	open_world(&w, &conn, &(struct pair_attr){0});
	assert_int_equal(urxe_qp_modify(w.e.end[0].qp, w.e.pair->now, &reset, URXE_QP_STATE), 0);
	attr = conn_qp_attr(&conn, 0, w.e.b, w.e.end[1].qpn);
	attr.rate_limit = 500000;
	for (int to = URXE_QPS_INIT; to <= URXE_QPS_RTS; to++) {
		uint32_t mask = conn_mask(URXE_QPT_UC, to);

		attr.state = (uint8_t)to;
		if (to == URXE_QPS_RTS)
			mask |= URXE_QP_RATE_LIMIT;
		assert_int_equal(urxe_qp_modify(w.e.end[0].qp, w.e.pair->now, &attr, mask), 0);
	}
	post_write(&w, 0);
	expect_rate(next_rate(&w, 0), 0.5 * GBPS);
	assert_int_equal(urxe_qp_modify(w.e.end[0].qp, w.e.pair->now, &reset, URXE_QP_STATE), 0);
	conn_bring_up(w.e.pair, &conn, 0, &w.e.end[0], &w.e.end[1]);
	post_write(&w, 0);
	assert_true(take(&w, 0, data));
	assert_true(take(&w, 0, data));
	close_world(&w);
}

/* --- Attributes. */

static int try_create(const struct urxe_dev_attr *wanted)
{
	static const struct urxe_ops ops;
	struct urxe_dev_attr attr = *wanted;
	struct urxe_dev *dev;
	int rc;

	attr.ops = &ops;
	attr.mtu = 1500;
	rc = urxe_dev_create(&attr, &dev);
	if (!rc)
		urxe_dev_destroy(dev);
	return rc;
}

static int try_params(struct urxe_dcqcn params)
{
	return try_create(&(struct urxe_dev_attr){.dcqcn = &params});
}

static void test_bad_attributes_are_refused(void **state)
{
	const struct urxe_dcqcn good = urxe_dcqcn_default;
	struct urxe_dcqcn bad;

	(void)state;
	assert_int_equal(try_create(&(struct urxe_dev_attr){0}), 0);
	assert_int_equal(try_create(&(struct urxe_dev_attr){.congestion = 2}), -EINVAL);
	assert_int_equal(try_create(&(struct urxe_dev_attr){.link_bps = URXE_MAX_LINK_BPS}), 0);
	assert_int_equal(try_create(&(struct urxe_dev_attr){.link_bps = URXE_MAX_LINK_BPS + 1}),
			 -EINVAL);
	assert_int_equal(try_create(&(struct urxe_dev_attr){.link_bps = 1}), 0);
	assert_int_equal(
		try_create(&(struct urxe_dev_attr){.link_bps = good.min_bps - 1, .dcqcn = &good}),
		-EINVAL);
	assert_int_equal(try_params(good), 0);
#define BAD(field, value)                                   \
	do {                                                \
		bad = good;                                 \
		bad.field = (value);                        \
		assert_int_equal(try_params(bad), -EINVAL); \
	} while (0)
	BAD(g_shift, 0);
	BAD(g_shift, 17);
	BAD(alpha_ns, 999);
	BAD(increase_ns, 999);
	BAD(increase_size, 0);
	BAD(ai_bps, 999999);
	BAD(hai_bps, good.ai_bps - 1);
	BAD(min_bps, 0);
	BAD(min_bps, 100 * GBPS + 1);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cnp_has_the_specified_bytes),
		cmocka_unit_test(test_rocev1_has_no_ecn_and_causes_no_cnp),
		cmocka_unit_test(test_cnps_keep_their_interval),
		cmocka_unit_test(test_marks_for_many_qps_are_bounded),
		cmocka_unit_test(test_marked_cnp_is_not_answered),
		cmocka_unit_test(test_reset_owes_no_cnp),
		cmocka_unit_test(test_bad_cnps_are_dropped),
		cmocka_unit_test(test_ecn_bits_depend_on_congestion_control),
		cmocka_unit_test(test_no_congestion_control_sends_and_obeys_no_cnp),
		cmocka_unit_test(test_first_cnp_cuts_the_link_rate),
		cmocka_unit_test(test_flood_of_cnps_cuts_the_rate_once),
		cmocka_unit_test(test_unknown_link_rate_has_a_default),
		cmocka_unit_test(test_rate_follows_dcqcn_model),
		cmocka_unit_test(test_byte_counter_leads_to_hyper_increase),
		cmocka_unit_test(test_idle_qp_recovers_its_rate),
		cmocka_unit_test(test_rate_has_a_minimum),
		cmocka_unit_test(test_reset_forgets_rate),
		cmocka_unit_test(test_slow_qp_does_not_delay_others),
		cmocka_unit_test(test_late_calls_keep_the_mean_rate),
		cmocka_unit_test(test_late_calls_keep_a_slow_rate),
		cmocka_unit_test(test_read_responses_obey_the_rate),
		cmocka_unit_test(test_rate_limited_packets_cause_no_timeout),
		cmocka_unit_test(test_rate_limit_is_obeyed),
		cmocka_unit_test(test_rate_limit_from_rts),
		cmocka_unit_test(test_bad_attributes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
