/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Offloads for the inner packets of VXLAN and Geneve, as Linux requests them: with a mode of its
 * own in revisions 4 to 6, with a bit of the descriptor in revision 7. The test computes the
 * expected checksums in another way, byte by byte.
 */
#include "guest.h"
#include "packet_bytes.h"

#define WHOLE     (VMXNET3_TXD_EOP | VMXNET3_TXD_CQ)
#define ETH       14
#define IP4       20
#define IP6       40
#define TCP       20
#define UDP       8
#define TUNNEL    8 /* the header of VXLAN, and of Geneve without options */
#define PROTO_TCP 6
#define PROTO_UDP 17
#define TCP_SUM   16
#define UDP_SUM   6

enum kind { VXLAN, VXLAN_OLD, GENEVE, GENEVE_IP /* without an inner Ethernet header */ };

struct packet {
	enum kind kind;
	bool outer_v6, inner_v6, outer_sum;
	uint32_t options; /* bytes of Geneve's options */
	uint32_t payload;
	uint8_t protocol;
	/* Filled in by build(). */
	uint32_t outer_l4, inner_l3, inner_l4, header, len;
	uint8_t data[70000];
};

static int create(void **state)
{
	*state = guest_create(1, 1);
	return 0;
}

static int destroy(void **state)
{
	guest_destroy(*state);
	return 0;
}

/* --- Packets */

static uint32_t pseudo(const uint8_t *ip, bool v6, uint32_t protocol, uint32_t len)
{
	return internet_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, protocol + len);
}

static void put_ip(uint8_t *ip, bool v6, uint32_t protocol, uint32_t len)
{
	if (v6) {
		ip[0] = 0x60;
		put16(ip + 4, len - IP6);
		ip[6] = (uint8_t)protocol;
		memset(ip + 8, 0xfd, 32);
		return;
	}
	ip[0] = 0x45;
	put16(ip + 2, len);
	put16(ip + 4, 0xffff); /* identification, before its wrap */
	ip[8] = 64;
	ip[9] = (uint8_t)protocol;
	memset(ip + 12, 10, 8);
	put16(ip + 10, ~internet_sum(ip, IP4, 0));
}

static uint32_t inner_type(const struct packet *p)
{
	return p->inner_v6 ? 0x86dd : 0x0800;
}

static void put_tunnel(struct packet *p)
{
	static const uint16_t ports[] = {4789, 8472, 6081, 6081};
	uint8_t *udp = p->data + p->outer_l4;

	put16(udp, 50000);
	put16(udp + 2, ports[p->kind]);
	put16(udp + 4, p->len - p->outer_l4);
	put16(udp + 6, p->outer_sum ? 0x1234 : 0);
	if (p->kind < GENEVE) {
		udp[UDP] = 8;
		return;
	}
	udp[UDP] = (uint8_t)(p->options / 4);
	put16(udp + UDP + 2, p->kind == GENEVE ? 0x6558 : inner_type(p));
	memset(udp + UDP + TUNNEL, 0xaa, p->options);
}

/* A packet as the network stack leaves it: the inner checksum field has the pseudo-header's sum. */
static void build(struct packet *p)
{
	uint32_t l4_header = p->protocol == PROTO_TCP ? TCP : UDP;
	uint8_t *l4;

	p->outer_l4 = ETH + (p->outer_v6 ? IP6 : IP4);
	p->inner_l3 = p->outer_l4 + UDP + TUNNEL + p->options + (p->kind == GENEVE_IP ? 0 : ETH);
	p->inner_l4 = p->inner_l3 + (p->inner_v6 ? IP6 : IP4);
	p->header = p->inner_l4 + l4_header;
	p->len = p->header + p->payload;
	memset(p->data, 0, p->header);
	put16(p->data + 12, p->outer_v6 ? 0x86dd : 0x0800);
	put_ip(p->data + ETH, p->outer_v6, PROTO_UDP, p->len - ETH);
	put_tunnel(p);
	if (p->kind != GENEVE_IP)
		put16(p->data + p->inner_l3 - 2, inner_type(p));
	put_ip(p->data + p->inner_l3, p->inner_v6, p->protocol, p->len - p->inner_l3);
	l4 = p->data + p->inner_l4;
	if (p->protocol == PROTO_TCP)
		l4[12] = 0x50;
	else
		put16(l4 + 4, p->len - p->inner_l4);
	put16(l4 + (p->protocol == PROTO_TCP ? TCP_SUM : UDP_SUM),
	      pseudo(p->data + p->inner_l3, p->inner_v6, p->protocol, p->len - p->inner_l4));
	for (uint32_t i = 0; i < p->payload; i++)
		p->data[p->header + i] = (uint8_t)(i * 7 + i / 256);
}

static bool inner_sum_right(const struct packet *p, const struct vnic_tx_frame *frame)
{
	uint32_t size = frame->len - p->inner_l4;

	return internet_sum(frame->data + p->inner_l4, size,
			    pseudo(frame->data + p->inner_l3, p->inner_v6, p->protocol, size)) ==
	       0xffff;
}

/* --- The driver */

/* The word and the flags of a packet's first descriptor. */
static void post(struct guest *g, const struct packet *p, uint32_t word, uint32_t flags)
{
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, p->len);
	uint32_t at = p->header;

	memcpy(guest_at(g, addr), p->data, p->len);
	guest_post_tx(&g->tx[0], addr, p->header | word, flags | p->header);
	while (p->len - at > VMXNET3_TXD_LEN) {
		guest_post_tx(&g->tx[0], addr + at, 8192, 0);
		at += 8192;
	}
	guest_post_tx(&g->tx[0], addr + at, p->len - at, WHOLE);
}

static void post_csum(struct guest *g, const struct packet *p, uint32_t revision)
{
	uint32_t at = p->inner_l4 + (p->protocol == PROTO_TCP ? TCP_SUM : UDP_SUM);

	if (revision >= 7)
		post(g, p, at << 18 | VMXNET3_TXD_EXT1, VMXNET3_OM_CSUM);
	else
		post(g, p, 0, VMXNET3_OM_ENCAP);
}

static void post_tso(struct guest *g, const struct packet *p, uint32_t revision, uint32_t mss)
{
	uint32_t word = mss << 18 | (p->outer_sum ? VMXNET3_TXD_OCO : 0);

	if (revision >= 7)
		post(g, p, word | VMXNET3_TXD_EXT1, VMXNET3_OM_TSO);
	else
		post(g, p, word, VMXNET3_OM_ENCAP);
}

static void start(struct guest *g, uint32_t revision)
{
	guest_write(g, VMXNET3_REG_VRRS, 1u << (revision - 1));
	assert_int_equal(guest_activate(g), 0);
}

/* --- Checksums */

static void send_checksums(struct guest *g, uint32_t revision)
{
	static struct packet p;
	struct vnic_tx_frame frame;

	for (uint32_t i = 0; i < 64; i++) {
		p = (struct packet){.kind = i / 16,
				    .outer_v6 = i & 4,
				    .inner_v6 = i & 8,
				    .options = i / 16 >= GENEVE ? i % 5 * 12 : 0,
				    .payload = 1 + i * 13,
				    .protocol = i & 1 ? PROTO_TCP : PROTO_UDP};
		build(&p);
		assert_false(inner_sum_right(&p, &(struct vnic_tx_frame){p.data, p.len}));
		post_csum(g, &p, revision);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
		assert_int_equal(frame.len, p.len);
		assert_true(inner_sum_right(&p, &frame));
		/* Only the inner checksum changes. */
		assert_memory_equal(frame.data, p.data, p.inner_l4);
		vnic_device_tx_done(g->dev, 0, 1);
		g->used[GUEST_IN_HIGHER] = 0;
	}
}

static void test_inner_checksum_is_right_in_revision_4(void **state)
{
	start(*state, 4);
	send_checksums(*state, 4);
}

static void test_inner_checksum_is_right_in_revision_7(void **state)
{
	start(*state, 7);
	send_checksums(*state, 7);
}

/* --- Segmentation */

static void check_ip(const uint8_t *ip, bool v6, uint32_t number, uint32_t len)
{
	if (v6) {
		assert_int_equal(get16(ip + 4), len - IP6);
		return;
	}
	assert_int_equal(get16(ip + 2), len);
	assert_int_equal(get16(ip + 4), (0xffff + number) & 0xffff);
	assert_int_equal(internet_sum(ip, IP4, 0), 0xffff);
}

static void check_segment(const struct packet *p, const struct vnic_tx_frame *frame,
			  uint32_t number, uint32_t mss)
{
	const uint8_t *udp = frame->data + p->outer_l4;
	uint32_t part = p->payload - number * mss < mss ? p->payload - number * mss : mss;
	uint32_t size = frame->len - p->outer_l4;

	assert_int_equal(frame->len, p->header + part);
	check_ip(frame->data + ETH, p->outer_v6, number, frame->len - ETH);
	check_ip(frame->data + p->inner_l3, p->inner_v6, number, frame->len - p->inner_l3);
	assert_int_equal(get16(udp + 4), size);
	if (p->outer_sum)
		assert_int_equal(
			internet_sum(udp, size,
				     pseudo(frame->data + ETH, p->outer_v6, PROTO_UDP, size)),
			0xffff);
	else
		assert_int_equal(get16(udp + 6), 0);
	assert_true(inner_sum_right(p, frame));
	assert_memory_equal(udp + UDP, p->data + p->outer_l4 + UDP,
			    p->inner_l3 - p->outer_l4 - UDP);
	assert_memory_equal(frame->data + p->header, p->data + p->header + number * mss, part);
}

static void segment(struct guest *g, uint32_t revision)
{
	static struct packet p;
	const uint32_t mss = 1300;
	struct vnic_tx_frame frame;

	for (uint32_t i = 0; i < 32; i++) {
		p = (struct packet){.kind = i / 8,
				    .outer_v6 = i & 4,
				    .inner_v6 = i & 2,
				    .outer_sum = i & 1,
				    .options = i / 8 >= GENEVE ? i % 5 * 12 : 0,
				    .payload = 1 + i * 2000,
				    .protocol = PROTO_TCP};
		build(&p);
		post_tso(g, &p, revision, mss);
		for (uint32_t j = 0; j * mss < p.payload; j++) {
			assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
			check_segment(&p, &frame, j, mss);
			vnic_device_tx_done(g->dev, 0, 1);
		}
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
		assert_true(guest_tx_completed(&g->tx[0]) >= 0);
		g->used[GUEST_IN_HIGHER] = 0;
	}
}

static void test_tunnelled_segments_are_right_in_revision_4(void **state)
{
	start(*state, 4);
	segment(*state, 4);
}

static void test_tunnelled_segments_are_right_in_revision_7(void **state)
{
	start(*state, 7);
	segment(*state, 7);
}

/* --- Packets that do not fit */

/* Each damage makes a packet without an inner header; the device drops it and goes on. */
static void test_packets_without_inner_header_are_dropped(void **state)
{
	struct guest *g = *state;
	static struct packet p;
	struct vnic_tx_frame frame;
	uint32_t dropped = 0;

	start(g, 4);
	for (uint32_t damage = 0; damage < 6; damage++)
		for (uint32_t mss = 0; mss <= 100; mss += 100) {
			p = (struct packet){.kind = GENEVE, .payload = 200, .protocol = PROTO_TCP};
			build(&p);
			switch (damage) {
			case 0: put16(p.data + p.outer_l4 + 2, 4790); break; /* another port */
			case 1: p.data[ETH + 9] = PROTO_TCP; break;
			case 2: put16(p.data + p.outer_l4 + UDP + 2, 0x0800); break;
			case 3: p.data[p.outer_l4 + UDP] = 0x3f; break;  /* no such options */
			case 4: p.data[p.inner_l3 + 9] = 1; break;       /* ICMP */
			default: put16(p.data + p.inner_l3 + 6, 0x2000); /* a fragment */
			}
			post_tso(g, &p, 4, mss);
			assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
			assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], ++dropped);
			assert_true(guest_tx_completed(&g->tx[0]) >= 0);
		}
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
	segment(g, 4);
}

/* Misfits of more than the assembled frames that may be outstanding: none of them keeps a slot. */
static void test_misfits_keep_no_slot(void **state)
{
	struct guest *g = *state;
	static struct packet p = {.kind = VXLAN, .payload = 10, .protocol = 1};
	struct vnic_tx_frame frame;

	start(g, 7);
	build(&p);
	for (uint32_t i = 0; i < 100; i++) {
		post_csum(g, &p, 7);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
		g->used[GUEST_IN_HIGHER] = 0;
	}
	send_checksums(g, 7);
}

/* A driver of revision 3 must not use the mode, and the bit means nothing before revision 7. */
static void test_tunnel_offload_needs_revision_4(void **state)
{
	struct guest *g = *state;
	static struct packet p = {.kind = VXLAN, .payload = 10, .protocol = PROTO_UDP};
	struct vnic_tx_frame frame;

	uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, sizeof(p.data));

	build(&p);
	memcpy(guest_at(g, addr), p.data, p.len);
	start(g, 6);
	guest_post_tx(&g->tx[0], addr, p.len | VMXNET3_TXD_EXT1 | (p.outer_l4 + UDP_SUM) << 18,
		      VMXNET3_OM_CSUM | p.outer_l4 | WHOLE);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
	assert_false(inner_sum_right(&p, &frame));
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	post_csum(g, &p, 4);
	vnic_device_tx_done(g->dev, 0, 1);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(g->tx[0].conf->status.error, VMXNET3_ERR_DESC_NOT_SPT);
}

/* A Linux that resumes from its disk on a new device goes on with the revision that it selected on
 * the old one. */
static void test_tunnel_offload_needs_no_selection(void **state)
{
	assert_int_equal(guest_activate(*state), 0);
	segment(*state, 4);
	segment(*state, 7);
	send_checksums(*state, 4);
	send_checksums(*state, 7);
}

#define TUNNEL_TEST(f) cmocka_unit_test_setup_teardown(f, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TUNNEL_TEST(test_inner_checksum_is_right_in_revision_4),
		TUNNEL_TEST(test_inner_checksum_is_right_in_revision_7),
		TUNNEL_TEST(test_tunnelled_segments_are_right_in_revision_4),
		TUNNEL_TEST(test_tunnelled_segments_are_right_in_revision_7),
		TUNNEL_TEST(test_packets_without_inner_header_are_dropped),
		TUNNEL_TEST(test_misfits_keep_no_slot),
		TUNNEL_TEST(test_tunnel_offload_needs_revision_4),
		TUNNEL_TEST(test_tunnel_offload_needs_no_selection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
