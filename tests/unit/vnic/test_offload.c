/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Offloads of a stock driver: checksums, segmentation, VLAN tags, frames in many pieces and
 * buffers, data rings. The test computes the expected checksums in another way, byte by byte.
 */
#include "guest.h"
#include "packet_bytes.h"

#include <errno.h>

#define CMD(name) ((uint32_t)VMXNET3_CMD_##name)
#define WHOLE     (VMXNET3_TXD_EOP | VMXNET3_TXD_CQ)

#define ETH       14
#define IP4       20
#define IP6       40
#define TCP       20
#define UDP       8
#define PROTO_TCP 6
#define PROTO_UDP 17

static int create(void **state)
{
	*state = guest_create(1, 2);
	return 0;
}

static int destroy(void **state)
{
	guest_destroy(*state);
	return 0;
}

/* --- Packets */

static uint32_t pseudo(const uint8_t *frame, uint32_t l3, bool v6, uint32_t protocol, uint32_t len)
{
	return internet_sum(frame + l3 + (v6 ? 8 : 12), v6 ? 32 : 8, protocol + len);
}

/*
 * Ethernet, IPv4 or IPv6 and TCP or UDP headers, then a payload of counting bytes; the checksums
 * are 0.
 */
static uint32_t build(uint8_t *frame, bool v6, uint32_t protocol, uint32_t payload)
{
	uint32_t l4 = ETH + (v6 ? IP6 : IP4), header = protocol == PROTO_TCP ? TCP : UDP;
	uint32_t len = l4 + header + payload;
	uint8_t *ip = frame + ETH;

	memset(frame, 0, l4 + header);
	memcpy(frame, (const uint8_t[]){2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, 12);
	put16(frame + 12, v6 ? 0x86dd : 0x0800);
	if (v6) {
		ip[0] = 0x60;
		put16(ip + 4, len - l4);
		ip[6] = (uint8_t)protocol;
		ip[7] = 64;
		memset(ip + 8, 0xfd, 16);
		memset(ip + 24, 0xfe, 16);
	} else {
		ip[0] = 0x45;
		put16(ip + 2, len - ETH);
		put16(ip + 4, 0xfffe); /* identification, close to its wrap */
		ip[8] = 64;
		ip[9] = (uint8_t)protocol;
		memcpy(ip + 12, (const uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
	}
	put16(frame + l4, 1000);
	put16(frame + l4 + 2, 2000);
	if (protocol == PROTO_TCP) {
		memcpy(frame + l4 + 4, (const uint8_t[]){0xff, 0xff, 0xff, 0x00}, 4);
		frame[l4 + 12] = 0x50;
		frame[l4 + 13] = 0x10;
	} else {
		put16(frame + l4 + 4, len - l4);
	}
	for (uint32_t i = 0; i < payload; i++)
		frame[l4 + header + i] = (uint8_t)(i * 7 + i / 256);
	return len;
}

static void set_ip4_sum(uint8_t *frame)
{
	put16(frame + ETH + 10, 0);
	put16(frame + ETH + 10, ~internet_sum(frame + ETH, IP4, 0));
}

/* Fills in both checksums. */
static void finish(uint8_t *frame, uint32_t len, bool v6, uint32_t protocol)
{
	uint32_t l4 = ETH + (v6 ? IP6 : IP4), at = l4 + (protocol == PROTO_TCP ? 16 : 6);

	if (!v6)
		set_ip4_sum(frame);
	put16(frame + at, 0);
	put16(frame + at,
	      ~internet_sum(frame + l4, len - l4, pseudo(frame, ETH, v6, protocol, len - l4)));
}

static void check_sums(const uint8_t *frame, uint32_t len, uint32_t l3, bool v6, uint32_t protocol)
{
	uint32_t l4 = l3 + (v6 ? IP6 : IP4);

	if (!v6)
		assert_int_equal(internet_sum(frame + l3, IP4, 0), 0xffff);
	assert_int_equal(
		internet_sum(frame + l4, len - l4, pseudo(frame, l3, v6, protocol, len - l4)),
		0xffff);
}

static uint64_t place(struct guest *g, const uint8_t *frame, uint32_t len)
{
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, len);

	memcpy(guest_at(g, addr), frame, len);
	return addr;
}

static void post(struct guest *g, const uint8_t *frame, uint32_t len, uint32_t msscof,
		 uint32_t flags)
{
	guest_post_tx(&g->tx[0], place(g, frame, len), len | msscof << 18, flags | WHOLE);
}

static struct vnic_tx_frame sent(struct guest *g)
{
	struct vnic_tx_frame frame = {0};

	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
	return frame;
}

/* --- Checksums of frames to send */

static void test_udp_and_tcp_checksums_are_completed(void **state)
{
	struct guest *g = *state;
	uint8_t frame[1514];

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 32; i++) {
		bool v6 = i & 1;
		uint32_t protocol = i & 2 ? PROTO_TCP : PROTO_UDP;
		uint32_t l4 = ETH + (v6 ? IP6 : IP4), at = l4 + (i & 2 ? 16 : 6);
		uint32_t len = build(frame, v6, protocol, i * 37 % 1000);
		struct vnic_tx_frame got;

		/*
		 * As a network stack does: the checksum field holds the sum of the pseudo-header.
		 */
		if (!v6)
			set_ip4_sum(frame);
		put16(frame + at, pseudo(frame, ETH, v6, protocol, len - l4));
		post(g, frame, len, at, l4 | VMXNET3_OM_CSUM);
		got = sent(g);
		assert_int_equal(got.len, len);
		check_sums(got.data, len, ETH, v6, protocol);
		finish(frame, len, v6, protocol);
		assert_memory_equal(got.data, frame, len);
		vnic_device_tx_done(g->dev, 0, 1);
		assert_int_equal(guest_tx_completed(&g->tx[0]), i);
	}
}

/* A checksum of 0 is sent as 0xffff: 0 would mean that a UDP datagram has none. */
static void test_checksum_of_0_is_sent_as_ffff(void **state)
{
	struct guest *g = *state;
	uint8_t frame[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	put16(frame + 42, 0xffff);
	post(g, frame, sizeof(frame), 40, 34 | VMXNET3_OM_CSUM);
	assert_int_equal(get16(sent(g).data + 40), 0xffff);
}

/*
 * A raw socket in the guest can request an impossible offload: the frame is dropped, and nothing
 * else happens.
 */
static void test_frame_with_misfit_checksum_offset_is_dropped(void **state)
{
	static const struct {
		uint32_t start, at;
	} cases[] = {{34, 59}, {34, 60}, {34, 1000}, {34, 32},
		     {60, 58}, {61, 62}, {13, 40},   {0, 0}};
	struct guest *g = *state;
	struct vnic_tx_frame frames[3];
	uint8_t frame[60] = {0};
	uint32_t n = sizeof(cases) / sizeof(cases[0]);

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < n; i++)
		post(g, frame, sizeof(frame), cases[i].at, cases[i].start | VMXNET3_OM_CSUM);
	post(g, frame, 44, 0, 0);
	post(g, frame, sizeof(frame), 1000, 34 | VMXNET3_OM_CSUM);
	post(g, frame, 45, 0, 0);
	/* A frame that does not fit waits for earlier frames, so that completions stay in order. */
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 3), 1);
	assert_int_equal(frames[0].len, 44);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(guest_tx_completed(&g->tx[0]), i);
	assert_int_equal(g->interrupts[0], 1); /* for the frame that was dropped */
	assert_int_equal(guest_tx_completed(&g->tx[0]), -1);
	vnic_device_tx_done(g->dev, 0, 1);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 3), 1);
	assert_int_equal(frames[0].len, 45);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], n + 1);
	guest_command(g, CMD(GET_STATS));
	assert_int_equal(g->tx[0].conf->stats[UPT1_TX_ERROR], n + 1);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
}

/* --- Segmentation */

/* A driver's ring of another size than GUEST_RING, set before the NIC is activated. */
static void resize_tx_ring(struct guest *g, uint32_t size)
{
	struct guest_txq *q = &g->tx[0];

	guest_ring_init(g, &q->ring, size);
	guest_ring_init(g, &q->comp, size);
	q->conf->ring_addr = q->ring.addr;
	q->conf->comp_ring_addr = q->comp.addr;
	q->conf->ring_size = q->conf->comp_ring_size = size;
}

struct tso {
	bool v6;
	uint32_t payload, mss;
	bool tag;
	uint32_t pieces; /* number of descriptors of the payload */
};

static void post_tso(struct guest *g, const uint8_t *packet, uint32_t len, uint32_t header,
		     const struct tso *t)
{
	uint64_t addr = place(g, packet, len);
	uint32_t first = t->mss << 18 | header, left = len - header, at = header;
	uint32_t flags = VMXNET3_OM_TSO | header | (t->tag ? VMXNET3_TXD_TI | 0x6007u << 16 : 0);

	/* The headers have a descriptor of their own, as with a data ring. */
	guest_post_tx(&g->tx[0], addr, first, flags);
	for (uint32_t i = 0; i < t->pieces; i++) {
		uint32_t part = i + 1 == t->pieces ? left : (len - header) / t->pieces;

		assert_true(part <= VMXNET3_TXD_LEN_ZERO);
		guest_post_tx(&g->tx[0], addr + at, part % VMXNET3_TXD_LEN_ZERO,
			      i + 1 == t->pieces ? WHOLE : 0);
		at += part;
		left -= part;
	}
}

static void check_segment(const struct vnic_tx_frame *frame, const uint8_t *packet,
			  const struct tso *t, uint32_t number, uint32_t segments)
{
	uint32_t tag = t->tag ? 4 : 0, l3 = ETH + tag, l4 = l3 + (t->v6 ? IP6 : IP4);
	uint32_t header = l4 + TCP, before = number * t->mss;
	uint32_t part = number + 1 == segments ? t->payload - before : t->mss;
	const uint8_t *tcp = frame->data + l4;
	uint32_t flags = 0x10 | (number == 0 ? 0x80 : 0) | (number + 1 == segments ? 0x09 : 0);

	assert_int_equal(frame->len, header + part);
	assert_memory_equal(frame->data, packet, 12);
	if (tag)
		assert_int_equal(get32(frame->data + 12), 0x81006007u);
	assert_int_equal(get16(frame->data + l3 - 2), t->v6 ? 0x86dd : 0x0800);
	if (t->v6) {
		assert_int_equal(get16(frame->data + l3 + 4), frame->len - l4);
	} else {
		assert_int_equal(get16(frame->data + l3 + 2), frame->len - l3);
		assert_int_equal(get16(frame->data + l3 + 4), (0xfffe + number) & 0xffff);
	}
	assert_int_equal(get32(tcp + 4), 0xffffff00u + before);
	assert_int_equal(tcp[13], flags);
	assert_memory_equal(frame->data + header, packet + header - tag + before, part);
	check_sums(frame->data, frame->len, l3, t->v6, PROTO_TCP);
}

static void segment(struct guest *g, const struct tso *t, uint32_t burst)
{
	static uint8_t packet[70000];
	uint32_t len = build(packet, t->v6, PROTO_TCP, t->payload), l4 = len - t->payload - TCP;
	uint32_t segments = (t->payload + t->mss - 1) / t->mss, seen = 0;
	uint32_t last = (g->tx[0].ring.next + t->pieces) % g->tx[0].ring.size;
	struct vnic_tx_frame frames[64];

	packet[l4 + 13] = 0x99; /* CWR, ACK, PSH, FIN */
	memset(packet + l4 + 16, 0x5a, 2);
	post_tso(g, packet, len, l4 + TCP, t);
	while (seen < segments) {
		uint32_t n = vnic_device_tx(g->dev, 0, frames, burst);

		assert_true(n > 0 && n <= segments - seen);
		assert_int_equal(guest_tx_completed(&g->tx[0]), -1);
		for (uint32_t i = 0; i < n; i++)
			check_segment(&frames[i], packet, t, seen + i, segments);
		/* The caller need not complete all frames at once. */
		n = (n + 1) / 2;
		vnic_device_tx_done(g->dev, 0, n);
		seen += n;
	}
	assert_int_equal(guest_tx_completed(&g->tx[0]), last);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, burst), 0);
}

static void test_segments_have_right_lengths_and_checksums(void **state)
{
	static const struct tso cases[] = {
		{false, 1, 1, false, 1},        {false, 1448, 1448, false, 1},
		{false, 1449, 1448, false, 2},  {true, 1447, 1428, false, 1},
		{true, 65000, 1428, true, 5},   {false, 65515 - TCP, 1448, true, 17},
		{false, 64000, 8948, false, 4}, {false, 300, 1, false, 3},
		{true, 65000, 8900, true, 40},
	};
	struct guest *g = *state;
	uint64_t packets = 0;

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tso *t = &cases[i / 2];

		segment(g, t, i & 1 ? 64 : 3);
		packets += (t->payload + t->mss - 1) / t->mss;
	}
	guest_command(g, CMD(GET_STATS));
	assert_int_equal(g->tx[0].conf->stats[UPT1_TX_TSO], packets);
	assert_int_equal(g->tx[0].conf->stats[UPT1_TX_UCAST], packets);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], 0);
}

/* DPDK's driver permits 255 mbufs for a packet: the headers' and 254 of payload. */
static void test_packet_of_255_descriptors_is_segmented(void **state)
{
	static const struct tso packet = {false, 65515 - TCP, 1448, true, 254};
	struct guest *g = *state;

	resize_tx_ring(g, 512);
	assert_int_equal(guest_activate(g), 0);
	/* The ring ends within the third packet. */
	for (uint32_t i = 0; i < 3; i++)
		segment(g, &packet, 64);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
}

static void test_vlan_tagged_packet_is_segmented(void **state)
{
	struct guest *g = *state;
	uint8_t plain[3000], tagged[3004];
	uint32_t len = build(plain, false, PROTO_TCP, 2800) + 4;
	struct vnic_tx_frame frames[2];

	memcpy(tagged, plain, 12);
	memcpy(tagged + 12, (const uint8_t[]){0x81, 0, 0, 5}, 4);
	memcpy(tagged + 16, plain + 12, len - 16);
	assert_int_equal(guest_activate(g), 0);
	post(g, tagged, len, 1400, (ETH + 4 + IP4 + TCP) | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 2), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(frames[i].len, ETH + 4 + IP4 + TCP + 1400);
		check_sums(frames[i].data, frames[i].len, ETH + 4, false, PROTO_TCP);
	}
}

static void test_packet_with_misfit_segmentation_is_dropped(void **state)
{
	struct guest *g = *state;
	uint8_t packet[3000];
	uint32_t len = build(packet, false, PROTO_TCP, 2000), header = ETH + IP4 + TCP;
	struct vnic_tx_frame frame;

	assert_int_equal(guest_activate(g), 0);
	post(g, packet, len, 0, header | VMXNET3_OM_TSO);         /* no size */
	post(g, packet, len, 9010, header | VMXNET3_OM_TSO);      /* longer than any frame */
	post(g, packet, header, 100, header | VMXNET3_OM_TSO);    /* no payload */
	post(g, packet, len, 100, (header - 1) | VMXNET3_OM_TSO); /* not TCP's header */
	post(g, packet, len, 100, (header + 4) | VMXNET3_OM_TSO);
	post(g, packet, len, 100, ETH | VMXNET3_OM_TSO);
	post(g, packet, 20, 100, header | VMXNET3_OM_TSO);
	packet[ETH + IP4 + 12] = 0x40; /* a header length below TCP's minimum */
	post(g, packet, len, 100, (header - 4) | VMXNET3_OM_TSO);
	packet[ETH + IP4 + 12] = 0x50;
	packet[ETH + 6] = 0x20; /* a fragment */
	post(g, packet, len, 100, header | VMXNET3_OM_TSO);
	len = build(packet, false, PROTO_UDP, 2000);
	post(g, packet, len, 100, header | VMXNET3_OM_TSO);
	packet[ETH] = 0x55; /* an unknown IP version */
	post(g, packet, len, 100, header | VMXNET3_OM_TSO);
	packet[ETH] = 0x44; /* a header length below IPv4's minimum */
	post(g, packet, len, 100, header | VMXNET3_OM_TSO);
	packet[12] = 0x22;
	post(g, packet, len, 100, header | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], 13);
	for (int i = 0; i < 13; i++)
		assert_int_equal(guest_tx_completed(&g->tx[0]), i);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
}

/* More pieces or bytes than a driver's contract permits: the device stops. */
static void test_endless_segmentation_stops_the_device(void **state)
{
	struct guest *g;
	struct vnic_tx_frame frame;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t pieces = i ? 5 : 257, len = i ? VMXNET3_TXD_LEN_ZERO : 100;

		g = *state = guest_create(1, 1);
		resize_tx_ring(g, 512);
		assert_int_equal(guest_activate(g), 0);
		for (uint32_t j = 0; j < pieces; j++)
			guest_post_tx(&g->tx[0], GUEST_HIGH,
				      len % VMXNET3_TXD_LEN_ZERO | (j ? 0 : 1000u << 18),
				      j ? 0 : VMXNET3_OM_TSO | 54);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
		assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
		assert_int_equal(g->tx[0].conf->status.error, VMXNET3_ERR_BIG_PKT);
		guest_destroy(g);
	}
}

/* TCP behind an IPv6 destination option. */
static void test_tcp_behind_ipv6_options_is_segmented(void **state)
{
	struct guest *g = *state;
	uint8_t plain[2000], packet[2008];
	uint32_t len = build(plain, true, PROTO_TCP, 1800) + 8, l4 = ETH + IP6 + 8;
	struct vnic_tx_frame frames[2];

	memcpy(packet, plain, ETH + IP6);
	memcpy(packet + ETH + IP6, (const uint8_t[]){PROTO_TCP, 0, 1, 4, 0, 0, 0, 0}, 8);
	memcpy(packet + l4, plain + ETH + IP6, len - l4);
	packet[ETH + 6] = 60;
	assert_int_equal(guest_activate(g), 0);
	post(g, packet, len, 1000, (l4 + TCP) | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 2), 2);
	assert_int_equal(get16(frames[0].data + ETH + 4), 8 + TCP + 1000);
	assert_int_equal(internet_sum(frames[0].data + l4, TCP + 1000,
				      pseudo(frames[0].data, ETH, true, PROTO_TCP, TCP + 1000)),
			 0xffff);
	/* The device refuses TCP behind a fragment or routing header. */
	vnic_device_tx_done(g->dev, 0, 2);
	packet[ETH + 6] = 44;
	post(g, packet, len, 1000, (l4 + TCP) | VMXNET3_OM_TSO);
	packet[ETH + 6] = 43;
	post(g, packet, len, 1000, (l4 + TCP) | VMXNET3_OM_TSO);
	packet[ETH + 6] = 60;
	packet[ETH + IP6 + 1] = 200; /* longer than the rest of the packet */
	post(g, packet, len, 1000, (l4 + TCP) | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 2), 0);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], 3);
}

static void test_reset_ends_a_segmentation(void **state)
{
	struct guest *g = *state;
	uint8_t packet[9000];
	uint32_t len = build(packet, false, PROTO_TCP, 8000);
	struct vnic_tx_frame frames[64];

	assert_int_equal(guest_activate(g), 0);
	post(g, packet, len, 10, (ETH + IP4 + TCP) | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 64),
			 16); /* as many as there is room for */
	vnic_device_tx_done(g->dev, 0, 3);
	guest_command(g, CMD(RESET_DEV));
	guest_ring_reset(&g->tx[0].ring);
	assert_int_equal(guest_activate(g), 0);
	post(g, packet, 60, 0, 0);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 64), 1);
	assert_int_equal(frames[0].len, 60);
}

/*
 * The link is down, and the driver posts more packets: a pause completes only the packet that was
 * being segmented, or it would not end before the driver does.
 */
static void test_pause_completes_the_segmented_packet_only(void **state)
{
	struct guest *g = *state;
	uint8_t packet[9000];
	uint32_t len = build(packet, false, PROTO_TCP, 8000);
	struct vnic_tx_frame frame;

	for (int link = 0; link < 2; link++) {
		guest_ring_reset(&g->tx[0].ring);
		guest_ring_reset(&g->tx[0].comp);
		assert_int_equal(guest_activate(g), 0);
		for (int i = 0; i < 3; i++)
			post(g, packet, len, 1000, (ETH + IP4 + TCP) | VMXNET3_OM_TSO);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
		vnic_device_tx_done(g->dev, 0, 1);
		vnic_device_set_link(g->dev, link ? 10000 : 0);
		vnic_device_pause(g->dev);
		assert_true(guest_tx_completed(&g->tx[0]) >= 0);
		assert_int_equal(guest_tx_completed(&g->tx[0]), -1);
		vnic_device_set_link(g->dev, 10000);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
		assert_int_equal(frame.len, ETH + IP4 + TCP + 1000);
	}
}

/* It would be lost with a machine that migrates before the driver grants the right again. */
static void test_a_device_without_bus_mastering_has_completed_its_packets(void **state)
{
	struct guest *g = *state;
	uint8_t packet[9000];
	uint32_t len = build(packet, false, PROTO_TCP, 8000);
	struct vnic_tx_frame frame;

	assert_int_equal(guest_activate(g), 0);
	post(g, packet, len, 1000, (ETH + IP4 + TCP) | VMXNET3_OM_TSO);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
	vnic_device_tx_done(g->dev, 0, 1);
	vnic_device_set_bus_master(g->dev, false);
	guest_move(g);
	assert_true(guest_tx_completed(&g->tx[0]) >= 0);
	assert_int_equal(guest_tx_completed(&g->tx[0]), -1);
}

/* --- Tags, pieces */

static void test_vlan_tag_is_inserted_on_transmit(void **state)
{
	struct guest *g = *state;
	uint8_t frame[GUEST_MTU + 18];
	uint32_t len = build(frame, false, PROTO_UDP, 100);
	struct vnic_tx_frame got;

	assert_int_equal(guest_activate(g), 0);
	post(g, frame, len, 0, VMXNET3_TXD_TI | 0xe123u << 16);
	got = sent(g);
	assert_int_equal(got.len, len + 4);
	assert_memory_equal(got.data, frame, 12);
	assert_int_equal(get32(got.data + 12), 0x8100e123u);
	assert_memory_equal(got.data + 16, frame + 12, len - 12);
	vnic_device_tx_done(g->dev, 0, 1);
	/* With a checksum, whose offset does not count the tag. */
	set_ip4_sum(frame);
	put16(frame + ETH + IP4 + 6, pseudo(frame, ETH, false, PROTO_UDP, len - ETH - IP4));
	post(g, frame, len, ETH + IP4 + 6, (ETH + IP4) | VMXNET3_OM_CSUM | VMXNET3_TXD_TI);
	got = sent(g);
	assert_int_equal(got.len, len + 4);
	check_sums(got.data, got.len, ETH + 4, false, PROTO_UDP);
	vnic_device_tx_done(g->dev, 0, 1);
	/* The longest frame with room for a tag, and a frame of one byte more. */
	memset(frame, 0, sizeof(frame));
	post(g, frame, GUEST_MTU + 14, 0, VMXNET3_TXD_TI);
	assert_int_equal(sent(g).len, GUEST_MTU + 18);
	vnic_device_tx_done(g->dev, 0, 1);
	post(g, frame, GUEST_MTU + 15, 0, VMXNET3_TXD_TI);
	assert_int_equal(vnic_device_tx(g->dev, 0, &got, 1), 0);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_TX_MISFIT], 1);
}

/* Sixteen pieces at each position of the ring; and as many frames as fit. */
static void test_frame_of_16_descriptors_is_sent(void **state)
{
	struct guest *g = *state;
	uint8_t frame[GUEST_MTU + 14];
	struct vnic_tx_frame frames[20];
	uint64_t addr;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 13);
	assert_int_equal(guest_activate(g), 0);
	addr = place(g, frame, sizeof(frame));
	for (uint32_t round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < 16; i++)
			guest_post_tx(&g->tx[0], addr + i * 500,
				      i == 15 ? sizeof(frame) - 7500 : 500, i == 15 ? WHOLE : 0);
		assert_int_equal(vnic_device_tx(g->dev, 0, frames, 2), 1);
		assert_int_equal(frames[0].len, sizeof(frame));
		assert_memory_equal(frames[0].data, frame, sizeof(frame));
		vnic_device_tx_done(g->dev, 0, 1);
		assert_int_equal(guest_tx_completed(&g->tx[0]), (round * 33 + 15) % GUEST_RING);
		guest_post_tx(&g->tx[0], addr, 60, WHOLE);
		assert_ptr_equal(sent(g).data, guest_at(g, addr));
		vnic_device_tx_done(g->dev, 0, 1);
		guest_tx_completed(&g->tx[0]);
		/* 33 descriptors each time, so that the ring ends at another place. */
		for (uint32_t i = 0; i < 16; i++)
			guest_post_tx(&g->tx[0], addr, 14, i == 15 ? WHOLE : 0);
		assert_int_equal(sent(g).len, 16 * 14);
		vnic_device_tx_done(g->dev, 0, 1);
		guest_tx_completed(&g->tx[0]);
	}
	for (uint32_t i = 0; i < 20; i++) {
		guest_post_tx(&g->tx[0], addr + i, 30, 0);
		guest_post_tx(&g->tx[0], addr + i + 30, 30, WHOLE);
	}
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 20), 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_memory_equal(frames[i].data, frame + i, 60);
	vnic_device_tx_done(g->dev, 0, 10);
	assert_int_equal(vnic_device_tx(g->dev, 0, frames, 20), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_memory_equal(frames[i].data, frame + 10 + i, 60);
}

/* --- Received: buffers */

static void test_jumbo_frame_spans_head_and_body_buffers(void **state)
{
	struct guest *g = *state;
	uint8_t frame[GUEST_MTU + 14];
	uint64_t head = 0;
	uint32_t got = 0;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 11);
	assert_int_equal(guest_activate(g), 0);
	/* One large buffer. */
	head = guest_post_rx(g, &g->rx[0], 0, sizeof(frame));
	assert_int_equal(vnic_device_rx(g->dev, 0, frame, sizeof(frame)), 0);
	assert_memory_equal(guest_at(g, head), frame, sizeof(frame));
	guest_received(&g->rx[0]);
	/*
	 * As Linux does: a head buffer of less than a page, then pages; for more than a lap of the
	 * ring.
	 */
	for (uint32_t round = 0; round < 30; round++) {
		uint64_t addr[4];
		const struct vmxnet3_rx_comp *comp;

		addr[0] = guest_post_rx(g, &g->rx[0], 0, 1500);
		for (uint32_t i = 1; i < 3; i++)
			addr[i] = guest_post_rx(g, &g->rx[0], 0, 4096 | VMXNET3_RXD_BODY);
		assert_int_equal(vnic_device_rx(g->dev, 0, frame, sizeof(frame)), 0);
		for (got = 0; (comp = guest_received(&g->rx[0])); got++)
			assert_int_equal(comp->index & 0xfff, (1 + round * 3 + got) % GUEST_RING);
		assert_int_equal(got, 3);
		assert_memory_equal(guest_at(g, addr[0]), frame, 1500);
		assert_memory_equal(guest_at(g, addr[1]), frame + 1500, 4096);
		assert_memory_equal(guest_at(g, addr[2]), frame + 1500 + 4096, 9014 - 1500 - 4096);
	}
	/* Body buffers of the second ring, as DPDK posts them. */
	head = guest_post_rx(g, &g->rx[0], 0, 2048);
	for (uint32_t i = 0; i < 4; i++)
		guest_post_rx(g, &g->rx[0], 1, 2048 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(g->dev, 0, frame, sizeof(frame)), 0);
	for (got = 0; guest_received(&g->rx[0]); got++)
		;
	assert_int_equal(got, 5);
}

static void test_small_frames_go_to_the_data_ring(void **state)
{
	struct guest *g = *state;
	uint64_t data_ring = guest_alloc(g, GUEST_IN_HIGH, GUEST_RING * 192ull), buffer;
	const struct vmxnet3_rx_comp *comp;
	uint8_t frame[300];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i + 2);
	g->rx[1].conf->data_ring_addr = data_ring;
	g->rx[1].conf->data_desc_size = 192;
	/* Before revision 3 the device ignores the field. */
	for (uint32_t round = 0; round < 2; round++) {
		guest_write(g, VMXNET3_REG_VRRS, round ? VMXNET3_REV_3 : VMXNET3_REV_2);
		assert_int_equal(guest_activate(g), 0);
		guest_post_rx(g, &g->rx[1], 0, 2048);
		assert_int_equal(vnic_device_rx(g->dev, 1, frame, 192), 0);
		comp = guest_received(&g->rx[1]);
		assert_int_equal(guest_rqid(comp), round ? 2 * 2 + 1 : 1);
		for (uint32_t i = 0; i < 2; i++)
			guest_ring_reset(&g->rx[1].ring[i]);
		guest_ring_reset(&g->rx[1].comp);
	}
	assert_memory_equal(guest_at(g, data_ring), frame, 192);
	memset(guest_at(g, data_ring), 0, 192);
	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < GUEST_RING; i++) {
		buffer = guest_post_rx(g, &g->rx[1], 0, 2048);
		frame[20] = (uint8_t)i;
		assert_int_equal(vnic_device_rx(g->dev, 1, frame, i & 1 ? 192 : 193), 0);
		comp = guest_received(&g->rx[1]);
		assert_int_equal(comp->index & 0xfff, i);
		assert_int_equal(comp->len & VMXNET3_RCD_LEN, i & 1 ? 192 : 193);
		assert_int_equal(guest_rqid(comp), i & 1 ? 5 : 1);
		assert_memory_equal(guest_at(g, i & 1 ? data_ring + i * 192 : buffer), frame, 192);
	}
}

static void test_bad_data_ring_does_not_activate(void **state)
{
	struct guest *g = *state;
	struct vmxnet3_rx_queue_desc *conf = g->rx[0].conf;

	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	conf->data_ring_addr = guest_alloc(g, GUEST_IN_HIGH, GUEST_RING * 128ull);
	conf->data_desc_size = 100;
	assert_int_equal(guest_activate(g), 1);
	conf->data_desc_size = 2048 + 64;
	assert_int_equal(guest_activate(g), 1);
	conf->data_desc_size = 128;
	assert_int_equal(guest_activate(g), 0);
	conf->data_ring_addr = GUEST_HIGHER + GUEST_REGION - GUEST_RING * 128 + 1;
	assert_int_equal(guest_activate(g), 1);
	conf->data_desc_size = 0;
	assert_int_equal(guest_activate(g), 0);
}

/* --- Received frames: tags and checksums */

static void set_features(struct guest *g, uint64_t features)
{
	g->shared->misc.upt_features = features;
	assert_int_equal(guest_command(g, CMD(UPDATE_FEATURE)), 0);
}

static const struct vmxnet3_rx_comp *receive(struct guest *g, const uint8_t *frame, uint32_t len,
					     uint64_t *addr)
{
	*addr = guest_post_rx(g, &g->rx[0], 0, 2048);
	assert_int_equal(vnic_device_rx(g->dev, 0, frame, len), 0);
	return guest_received(&g->rx[0]);
}

static void test_vlan_tag_is_stripped_on_receive(void **state)
{
	struct guest *g = *state;
	uint8_t frame[100];
	const struct vmxnet3_rx_comp *comp;
	uint64_t addr;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i + 2);
	memcpy(frame + 12, (const uint8_t[]){0x81, 0x00, 0xa1, 0x23}, 4);
	assert_int_equal(guest_activate(g), 0);
	comp = receive(g, frame, sizeof(frame), &addr);
	assert_int_equal(comp->len, sizeof(frame)); /* as it came */
	assert_memory_equal(guest_at(g, addr), frame, sizeof(frame));
	set_features(g, UPT1_F_RXVLAN);
	comp = receive(g, frame, sizeof(frame), &addr);
	assert_int_equal(comp->len, (sizeof(frame) - 4) | VMXNET3_RCD_TS | 0xa123u << 16);
	assert_memory_equal(guest_at(g, addr), frame, 12);
	assert_memory_equal(guest_at(g, addr + 12), frame + 16, sizeof(frame) - 16);
	/* The shortest frame with a tag, and a frame without. */
	comp = receive(g, frame, 18, &addr);
	assert_int_equal(comp->len, 14 | VMXNET3_RCD_TS | 0xa123u << 16);
	comp = receive(g, frame, 17, &addr);
	assert_int_equal(comp->len, 17);
	frame[12] = 0x08;
	comp = receive(g, frame, sizeof(frame), &addr);
	assert_int_equal(comp->len, sizeof(frame));
	set_features(g, 0);
	frame[12] = 0x81;
	comp = receive(g, frame, sizeof(frame), &addr);
	assert_int_equal(comp->len, sizeof(frame));
}

/* Over several buffers, from several parts. */
static void test_tag_is_stripped_from_a_scattered_frame(void **state)
{
	struct guest *g = *state;
	uint8_t frame[400];
	struct iovec parts[3] = {{frame, 13}, {frame + 13, 100}, {frame + 113, 287}};
	const struct vmxnet3_rx_comp *comp;
	uint64_t head, body;

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 3 + 2);
	memcpy(frame + 12, (const uint8_t[]){0x81, 0x00, 0x01, 0x23}, 4);
	assert_int_equal(guest_activate(g), 0);
	set_features(g, UPT1_F_RXVLAN);
	head = guest_post_rx(g, &g->rx[0], 0, 128);
	body = guest_post_rx(g, &g->rx[0], 1, 1024 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rxv(g->dev, 0, parts, 3), 0);
	comp = guest_received(&g->rx[0]);
	assert_int_equal(comp->len, 128);
	comp = guest_received(&g->rx[0]);
	assert_int_equal(comp->len, (400 - 4 - 128) | VMXNET3_RCD_TS | 0x123u << 16);
	assert_memory_equal(guest_at(g, head), frame, 12);
	assert_memory_equal(guest_at(g, head + 12), frame + 16, 116);
	assert_memory_equal(guest_at(g, body), frame + 132, 400 - 132);
}

#define BITS                                                                                      \
	(VMXNET3_RCD_TUC | VMXNET3_RCD_UDP | VMXNET3_RCD_TCP | VMXNET3_RCD_IPC | VMXNET3_RCD_V6 | \
	 VMXNET3_RCD_V4 | VMXNET3_RCD_FRG)

static uint32_t csum_bits(struct guest *g, const uint8_t *frame, uint32_t len)
{
	uint64_t addr;
	const struct vmxnet3_rx_comp *comp = receive(g, frame, len, &addr);

	assert_memory_equal(guest_at(g, addr), frame, len);
	return (comp->gen & BITS) | (comp->index & VMXNET3_RCD_CNC);
}

static void test_right_and_wrong_checksums_are_told_apart(void **state)
{
	static const uint32_t kinds[2][2] = {
		{VMXNET3_RCD_V4 | VMXNET3_RCD_IPC | VMXNET3_RCD_UDP,
		 VMXNET3_RCD_V4 | VMXNET3_RCD_IPC | VMXNET3_RCD_TCP},
		{VMXNET3_RCD_V6 | VMXNET3_RCD_UDP, VMXNET3_RCD_V6 | VMXNET3_RCD_TCP},
	};
	struct guest *g = *state;
	uint8_t frame[1514];

	assert_int_equal(guest_activate(g), 0);
	set_features(g, UPT1_F_RXCSUM);
	for (uint32_t i = 0; i < 12; i++) {
		bool v6 = i & 1;
		uint32_t protocol = i & 2 ? PROTO_TCP : PROTO_UDP, kind = kinds[v6][!!(i & 2)];
		uint32_t len = build(frame, v6, protocol, i * 97 % 1200);

		finish(frame, len, v6, protocol);
		assert_int_equal(csum_bits(g, frame, len), kind | VMXNET3_RCD_TUC);
		/* Padding is not part of the packet. */
		frame[len] = 99;
		assert_int_equal(csum_bits(g, frame, len + 1), kind | VMXNET3_RCD_TUC);
		frame[ETH + (v6 ? IP6 : IP4) + 1] ^= 4;
		assert_int_equal(csum_bits(g, frame, len), kind);
	}
}

static void test_receive_checksum_bits_follow_the_rules(void **state)
{
	const uint32_t udp4 = VMXNET3_RCD_V4 | VMXNET3_RCD_IPC | VMXNET3_RCD_UDP;
	struct guest *g = *state;
	uint8_t frame[200];
	uint32_t len;

	assert_int_equal(guest_activate(g), 0);
	len = build(frame, false, PROTO_UDP, 100);
	finish(frame, len, false, PROTO_UDP);
	assert_int_equal(csum_bits(g, frame, len), VMXNET3_RCD_CNC); /* nobody asked */
	set_features(g, UPT1_F_RXCSUM);
	assert_int_equal(csum_bits(g, frame, len), udp4 | VMXNET3_RCD_TUC);
	/* A checksum of 0 is valid over IPv4, and wrong over IPv6. */
	put16(frame + ETH + IP4 + 6, 0);
	assert_int_equal(csum_bits(g, frame, len), udp4 | VMXNET3_RCD_TUC);
	frame[ETH + 10] ^= 1;
	assert_int_equal(csum_bits(g, frame, len),
			 VMXNET3_RCD_V4 | VMXNET3_RCD_UDP | VMXNET3_RCD_TUC);
	len = build(frame, true, PROTO_UDP, 100);
	assert_int_equal(csum_bits(g, frame, len), VMXNET3_RCD_V6 | VMXNET3_RCD_UDP);
	/* A UDP length beyond the packet, or below the header's length. */
	len = build(frame, false, PROTO_UDP, 100);
	finish(frame, len, false, PROTO_UDP);
	put16(frame + ETH + IP4 + 4, 109);
	assert_int_equal(csum_bits(g, frame, len), udp4);
	put16(frame + ETH + IP4 + 4, 7);
	assert_int_equal(csum_bits(g, frame, len), udp4);
	/* Fragments, and packets that are neither TCP nor UDP. */
	len = build(frame, false, PROTO_UDP, 100);
	put16(frame + ETH + 6, 0x2000);
	set_ip4_sum(frame);
	assert_int_equal(csum_bits(g, frame, len),
			 VMXNET3_RCD_V4 | VMXNET3_RCD_IPC | VMXNET3_RCD_FRG);
	put16(frame + ETH + 6, 0);
	frame[ETH + 9] = 1;
	set_ip4_sum(frame);
	assert_int_equal(csum_bits(g, frame, len), VMXNET3_RCD_V4 | VMXNET3_RCD_IPC);
	/* The device does not check an incomplete packet. */
	len = build(frame, false, PROTO_TCP, 100);
	finish(frame, len, false, PROTO_TCP);
	assert_int_equal(csum_bits(g, frame, len - 1), VMXNET3_RCD_CNC);
	assert_int_equal(csum_bits(g, frame, ETH + IP4 - 1), VMXNET3_RCD_CNC);
	put16(frame + ETH + 2, 19);
	assert_int_equal(csum_bits(g, frame, len), VMXNET3_RCD_CNC);
	put16(frame + ETH + 2, IP4 + TCP - 1); /* shorter than a TCP header */
	set_ip4_sum(frame);
	assert_int_equal(csum_bits(g, frame, len),
			 VMXNET3_RCD_V4 | VMXNET3_RCD_IPC | VMXNET3_RCD_TCP);
	frame[12] = 0x99;
	assert_int_equal(csum_bits(g, frame, len), VMXNET3_RCD_CNC);
}

/* Puts tags, without their values, behind the MACs; returns the new length. */
static uint32_t insert_types(uint8_t *frame, uint32_t len, uint32_t outer, uint32_t inner)
{
	memmove(frame + 20, frame + 12, len - 12);
	put16(frame + 12, outer);
	put16(frame + 14, 0);
	put16(frame + 16, inner);
	put16(frame + 18, 0);
	return len + 8;
}

/* Linux' driver looks for a TCP header behind one tag at most. */
static void test_checksums_behind_two_tags_are_not_reported(void **state)
{
	static const struct {
		uint32_t outer, inner;
		bool one_is_left; /* after the removal of an 802.1Q tag */
	} cases[] = {
		{0x8100, 0x8100, true},
		{0x8100, 0x88a8, true},
		{0x88a8, 0x8100, false},
		{0x88a8, 0x88a8, false},
	};
	struct guest *g = *state;
	uint8_t frame[1518];

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 16; i++) {
		bool v6 = i & 1, strip = i & 2, one_is_left = strip && cases[i / 4].one_is_left;
		uint32_t headers = ETH + (v6 ? IP6 : IP4) + TCP, len;
		const struct vmxnet3_rx_comp *comp;
		uint64_t addr;

		set_features(g, UPT1_F_RXCSUM | (strip ? UPT1_F_RXVLAN : 0));
		len = build(frame, v6, PROTO_TCP, sizeof(frame) - 8 - headers);
		finish(frame, len, v6, PROTO_TCP);
		len = insert_types(frame, len, cases[i / 4].outer, cases[i / 4].inner);
		comp = receive(g, frame, len, &addr);
		assert_int_equal(!!(comp->gen & VMXNET3_RCD_TCP), one_is_left);
		assert_int_equal(!!(comp->gen & BITS), one_is_left);
		assert_int_equal(!(comp->index & VMXNET3_RCD_CNC), one_is_left);
	}
}

#define GUEST_TEST(f) cmocka_unit_test_setup_teardown(f, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GUEST_TEST(test_udp_and_tcp_checksums_are_completed),
		GUEST_TEST(test_checksum_of_0_is_sent_as_ffff),
		GUEST_TEST(test_frame_with_misfit_checksum_offset_is_dropped),
		GUEST_TEST(test_segments_have_right_lengths_and_checksums),
		GUEST_TEST(test_packet_of_255_descriptors_is_segmented),
		GUEST_TEST(test_vlan_tagged_packet_is_segmented),
		GUEST_TEST(test_packet_with_misfit_segmentation_is_dropped),
		cmocka_unit_test(test_endless_segmentation_stops_the_device),
		GUEST_TEST(test_tcp_behind_ipv6_options_is_segmented),
		GUEST_TEST(test_reset_ends_a_segmentation),
		GUEST_TEST(test_pause_completes_the_segmented_packet_only),
		GUEST_TEST(test_a_device_without_bus_mastering_has_completed_its_packets),
		GUEST_TEST(test_vlan_tag_is_inserted_on_transmit),
		GUEST_TEST(test_frame_of_16_descriptors_is_sent),
		GUEST_TEST(test_jumbo_frame_spans_head_and_body_buffers),
		GUEST_TEST(test_small_frames_go_to_the_data_ring),
		GUEST_TEST(test_bad_data_ring_does_not_activate),
		GUEST_TEST(test_vlan_tag_is_stripped_on_receive),
		GUEST_TEST(test_tag_is_stripped_from_a_scattered_frame),
		GUEST_TEST(test_right_and_wrong_checksums_are_told_apart),
		GUEST_TEST(test_receive_checksum_bits_follow_the_rules),
		GUEST_TEST(test_checksums_behind_two_tags_are_not_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
