/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive side scaling: hash values against the examples of Microsoft's "Verifying the RSS Hash
 * Calculation", the driver's table and fields, and configurations that the device must refuse.
 */
#include "guest.h"
#include "packet_bytes.h"

#include <arpa/inet.h>
#include <errno.h>

#define CMD(name) ((uint32_t)VMXNET3_CMD_##name)
#define QUEUES    4
#define TABLE     16
#define ETH       14
#define TCP       6
#define UDP       17
#define ESP       50
#define ALL_TYPES 0xf

/* The key of the examples. */
static const uint8_t key[UPT1_RSS_KEY_SIZE] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

struct example {
	const char *source, *destination;
	uint16_t source_port, destination_port;
	uint32_t addresses, ports; /* the hashes without and with ports */
};

static const struct example examples[] = {
	{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178},
	{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea},
	{"24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a},
	{"38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f},
	{"153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2},
	{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d},
	{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0f0c461c, 0xdde51bbf},
	{"3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024,
	 0x4b61e985, 0x02d1feef},
};
#define EXAMPLES (sizeof(examples) / sizeof(examples[0]))

struct nic {
	struct guest *g;
	uint64_t conf_addr;
	struct upt1_rss_conf *conf;
};

static int create(void **state)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	nic->g = guest_create(1, QUEUES);
	nic->conf_addr = guest_alloc(nic->g, GUEST_IN_HIGH, sizeof(*nic->conf));
	nic->conf = guest_at(nic->g, nic->conf_addr);
	nic->conf->types = ALL_TYPES;
	nic->conf->function = UPT1_RSS_HASH_FUNC_TOEPLITZ;
	nic->conf->key_size = sizeof(key);
	nic->conf->table_size = TABLE;
	memcpy(nic->conf->key, key, sizeof(key));
	for (uint32_t i = 0; i < TABLE; i++)
		nic->conf->table[i] = (uint8_t)(i % QUEUES);
	nic->g->shared->rss = (struct vmxnet3_variable_conf){1, sizeof(*nic->conf), nic->conf_addr};
	nic->g->shared->misc.upt_features = UPT1_F_RSS;
	guest_write(nic->g, VMXNET3_REG_VRRS, VMXNET3_REV_9);
	for (uint32_t i = 0; i < QUEUES; i++)
		for (uint32_t j = 0; j < GUEST_RING - 1; j++)
			guest_post_rx(nic->g, &nic->g->rx[i], 0, 256);
	*state = nic;
	return 0;
}

static int destroy(void **state)
{
	struct nic *nic = *state;

	guest_destroy(nic->g);
	free(nic);
	return 0;
}

/* --- Packets */

static bool is_v6(const struct example *e)
{
	return strchr(e->source, ':');
}

/* A packet of an example, as IP sends it; returns its length. */
static uint32_t build(uint8_t *frame, const struct example *e, uint8_t protocol)
{
	uint8_t *ip = frame + ETH, *l4 = ip + (is_v6(e) ? 40 : 20);

	memset(frame, 0, 100);
	frame[0] = 2;
	if (is_v6(e)) {
		put16(frame + 12, 0x86dd);
		ip[0] = 0x60;
		put16(ip + 4, 20);
		ip[6] = protocol;
		assert_int_equal(inet_pton(AF_INET6, e->source, ip + 8), 1);
		assert_int_equal(inet_pton(AF_INET6, e->destination, ip + 24), 1);
	} else {
		put16(frame + 12, 0x0800);
		ip[0] = 0x45;
		put16(ip + 2, 40);
		ip[9] = protocol;
		assert_int_equal(inet_pton(AF_INET, e->source, ip + 12), 1);
		assert_int_equal(inet_pton(AF_INET, e->destination, ip + 16), 1);
	}
	put16(l4, e->source_port);
	put16(l4 + 2, e->destination_port);
	return (uint32_t)(l4 + 20 - frame);
}

/* Inserts a VLAN tag; returns the new length. */
static uint32_t tag(uint8_t *frame, uint32_t len)
{
	memmove(frame + 16, frame + 12, len - 12);
	memcpy(frame + 12, "\x81\x00\x00\x05", 4);
	return len + 4;
}

/* Receives a frame of a flow in any queue: the queue and the completion. */
static uint32_t receive(struct nic *nic, uint32_t flow, const uint8_t *frame, uint32_t len,
			struct vmxnet3_rx_comp *last)
{
	const struct vmxnet3_rx_comp *comp = NULL;
	uint32_t queue;

	assert_int_equal(vnic_device_rx(nic->g->dev, flow, frame, len), 0);
	for (queue = 0; queue < QUEUES; queue++) {
		comp = guest_received(&nic->g->rx[queue]);
		if (comp)
			break;
	}
	assert_non_null(comp);
	*last = *comp;
	assert_int_equal(guest_rqid(comp), queue);
	return queue;
}

/* Expects a type and a hash, in the queue of the table. */
static void expect_hash(struct nic *nic, const uint8_t *frame, uint32_t len, uint32_t type,
			uint32_t hash)
{
	struct vmxnet3_rx_comp comp;
	uint32_t queue = receive(nic, 3, frame, len, &comp);

	assert_int_equal((comp.index & VMXNET3_RCD_RSS) >> VMXNET3_RCD_RSS_SHIFT, type);
	assert_int_equal(comp.rss_hash, hash);
	assert_int_equal(queue, type ? nic->conf->table[hash % nic->conf->table_size] : 3);
}

static void expect_examples(struct nic *nic, uint8_t protocol, uint32_t v4, uint32_t v6)
{
	uint8_t frame[128];

	for (size_t i = 0; i < EXAMPLES; i++) {
		const struct example *e = &examples[i];
		uint32_t len = build(frame, e, protocol), type = is_v6(e) ? v6 : v4,
			 hash = e->ports;

		if (type == VMXNET3_RCD_RSS_TYPE_IPV4 || type == VMXNET3_RCD_RSS_TYPE_IPV6)
			hash = e->addresses;
		else if (type == VMXNET3_RCD_RSS_TYPE_NONE)
			hash = 0;
		expect_hash(nic, frame, len, type, hash);
		expect_hash(nic, frame, tag(frame, len), type, hash);
	}
}

static void set_fields(struct nic *nic, uint32_t fields)
{
	nic->g->shared->rss_fields = fields;
	assert_int_equal(guest_command(nic->g, CMD(SET_RSS_FIELDS)), 0);
}

/* --- The hash */

static void test_tcp_ports_are_hashed_by_default(void **state)
{
	struct nic *nic = *state;

	assert_int_equal(guest_activate(nic->g), 0);
	expect_examples(nic, TCP, VMXNET3_RCD_RSS_TYPE_TCPIPV4, VMXNET3_RCD_RSS_TYPE_TCPIPV6);
	expect_examples(nic, UDP, VMXNET3_RCD_RSS_TYPE_IPV4, VMXNET3_RCD_RSS_TYPE_IPV6);
}

static void test_udp_and_esp_fields_are_hashed_on_request(void **state)
{
	struct nic *nic = *state;

	assert_int_equal(guest_activate(nic->g), 0);
	set_fields(nic, VMXNET3_RSS_FIELDS);
	expect_examples(nic, UDP, VMXNET3_RCD_RSS_TYPE_UDPIPV4, VMXNET3_RCD_RSS_TYPE_UDPIPV6);
	/* ESP's index lies where TCP has its ports. */
	expect_examples(nic, ESP, VMXNET3_RCD_RSS_TYPE_ESPIPV4, VMXNET3_RCD_RSS_TYPE_ESPIPV6);
}

static void test_hash_fields_differ_by_ip_version(void **state)
{
	struct nic *nic = *state;

	assert_int_equal(guest_activate(nic->g), 0);
	set_fields(nic, VMXNET3_RSS_FIELDS_UDPIP6 | VMXNET3_RSS_FIELDS_TCPIP4 |
				VMXNET3_RSS_FIELDS_ESPIP4);
	expect_examples(nic, UDP, VMXNET3_RCD_RSS_TYPE_IPV4, VMXNET3_RCD_RSS_TYPE_UDPIPV6);
	expect_examples(nic, TCP, VMXNET3_RCD_RSS_TYPE_TCPIPV4, VMXNET3_RCD_RSS_TYPE_IPV6);
	expect_examples(nic, ESP, VMXNET3_RCD_RSS_TYPE_ESPIPV4, VMXNET3_RCD_RSS_TYPE_IPV6);
}

/* Types that the driver does not list are not hashed: the frame keeps its flow's queue. */
static void test_unlisted_hash_types_are_not_hashed(void **state)
{
	struct nic *nic = *state;

	nic->conf->types = UPT1_RSS_HASH_TYPE_TCP_IPV4;
	assert_int_equal(guest_activate(nic->g), 0);
	expect_examples(nic, UDP, VMXNET3_RCD_RSS_TYPE_NONE, VMXNET3_RCD_RSS_TYPE_NONE);
	expect_examples(nic, TCP, VMXNET3_RCD_RSS_TYPE_TCPIPV4, VMXNET3_RCD_RSS_TYPE_NONE);
}

/* All fragments of a packet go to one queue. */
static void test_fragments_are_hashed_by_address_only(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];
	uint32_t len = build(frame, &examples[0], TCP);

	assert_int_equal(guest_activate(nic->g), 0);
	put16(frame + ETH + 6, 0x2000);
	expect_hash(nic, frame, len, VMXNET3_RCD_RSS_TYPE_IPV4, examples[0].addresses);
	put16(frame + ETH + 6, 0x0010);
	expect_hash(nic, frame, len, VMXNET3_RCD_RSS_TYPE_IPV4, examples[0].addresses);
}

/* A frame that ends before its ports, its addresses, or its IP header. */
static void test_truncated_frames_are_hashed_by_what_is_left(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];

	build(frame, &examples[0], TCP);
	assert_int_equal(guest_activate(nic->g), 0);
	expect_hash(nic, frame, 38, VMXNET3_RCD_RSS_TYPE_TCPIPV4, examples[0].ports);
	expect_hash(nic, frame, 37, VMXNET3_RCD_RSS_TYPE_IPV4, examples[0].addresses);
	expect_hash(nic, frame, 34, VMXNET3_RCD_RSS_TYPE_IPV4, examples[0].addresses);
	expect_hash(nic, frame, 33, VMXNET3_RCD_RSS_TYPE_NONE, 0);
	expect_hash(nic, frame, 14, VMXNET3_RCD_RSS_TYPE_NONE, 0);
}

/* RoCEv1 and all that is not IP. */
static void test_frames_other_than_ip_are_not_hashed(void **state)
{
	struct nic *nic = *state;
	const uint8_t frame[64] = {[0] = 2, [12] = 0x89, [13] = 0x15};
	struct vmxnet3_rx_comp comp;

	assert_int_equal(guest_activate(nic->g), 0);
	for (uint32_t flow = 0; flow < 2 * QUEUES; flow++) {
		assert_int_equal(receive(nic, flow, frame, sizeof(frame), &comp), flow % QUEUES);
		assert_int_equal(comp.index & VMXNET3_RCD_RSS, 0);
	}
}

/* The parts of a frame may end anywhere. */
static void test_hash_covers_a_frame_in_parts(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];
	uint32_t len = build(frame, &examples[5], TCP);
	uint32_t queue = nic->conf->table[examples[5].ports % TABLE];

	assert_int_equal(guest_activate(nic->g), 0);
	for (uint32_t cut = 1; cut < len; cut += 7) {
		const struct iovec parts[2] = {{frame, cut}, {frame + cut, len - cut}};
		const struct vmxnet3_rx_comp *comp;

		assert_int_equal(vnic_device_rxv(nic->g->dev, 0, parts, 2), 0);
		comp = guest_received(&nic->g->rx[queue]);
		assert_non_null(comp);
		assert_int_equal(comp->rss_hash, examples[5].ports);
	}
}

/* --- The configuration */

static void test_driver_switches_rss_on_while_running(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];
	uint32_t len = build(frame, &examples[0], TCP);
	struct vmxnet3_rx_comp comp;

	nic->g->shared->misc.upt_features = 0;
	nic->conf->function = 77; /* not read */
	assert_int_equal(guest_activate(nic->g), 0);
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_RSSIDT)), 1);
	assert_int_equal(receive(nic, 2, frame, len, &comp), 2);
	assert_int_equal(comp.index & VMXNET3_RCD_RSS, 0);
	/* The driver switches RSS on while the NIC runs. */
	nic->g->shared->misc.upt_features = UPT1_F_RSS;
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_FEATURE)), 1);
	assert_int_equal(receive(nic, 2, frame, len, &comp), 2);
	nic->conf->function = UPT1_RSS_HASH_FUNC_TOEPLITZ;
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_FEATURE)), 0);
	expect_hash(nic, frame, len, VMXNET3_RCD_RSS_TYPE_TCPIPV4, examples[0].ports);
}

/* A new table takes effect with the command; a wrong one is refused, and the old one stays. */
static void test_bad_indirection_table_leaves_the_old_one(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];
	uint32_t len = build(frame, &examples[0], TCP);
	struct vmxnet3_rx_comp comp;

	assert_int_equal(guest_activate(nic->g), 0);
	memset(nic->conf->table, 3, TABLE);
	assert_int_equal(receive(nic, 1, frame, len, &comp), examples[0].ports % QUEUES);
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_RSSIDT)), 0);
	assert_int_equal(receive(nic, 1, frame, len, &comp), 3);
	memset(nic->conf->table, 2, TABLE);
	nic->conf->table[TABLE - 1] = QUEUES;
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_RSSIDT)), 1);
	assert_int_equal(receive(nic, 1, frame, len, &comp), 3);
}

/* The largest table, and one whose size is no power of two. */
static void test_indirection_table_has_1_to_128_entries(void **state)
{
	static const uint16_t sizes[] = {1, 12, 127, UPT1_RSS_TABLE_SIZE};
	struct nic *nic = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t frame[128];
		uint32_t len = build(frame, &examples[i], TCP);

		for (uint32_t j = 0; j < sizes[i]; j++)
			nic->conf->table[j] = (uint8_t)(j * j % QUEUES);
		nic->conf->table_size = sizes[i];
		if (i == 0)
			assert_int_equal(guest_activate(nic->g), 0);
		else
			assert_int_equal(guest_command(nic->g, CMD(UPDATE_RSSIDT)), 0);
		expect_hash(nic, frame, len, VMXNET3_RCD_RSS_TYPE_TCPIPV4, examples[i].ports);
	}
}

/* The bytes that a short key lacks are 0. */
static void test_short_rss_key_is_padded_with_zeros(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[128];
	uint32_t len = build(frame, &examples[0], UDP);

	memset(nic->conf->key + 12, 0xff, sizeof(key) - 12);
	nic->conf->key_size = 12;
	assert_int_equal(guest_activate(nic->g), 0);
	/* The hash of both IPv4 addresses depends on 12 bytes of the key. */
	expect_hash(nic, frame, len, VMXNET3_RCD_RSS_TYPE_IPV4, examples[0].addresses);
}

static void test_bad_rss_configuration_does_not_activate(void **state)
{
	struct nic *nic = *state;
	struct vmxnet3_variable_conf *info = &nic->g->shared->rss, good_info = *info;
	struct upt1_rss_conf good = *nic->conf, bad[6];

	for (size_t i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].function = UPT1_RSS_HASH_FUNC_NONE;
	bad[1].function = 2;
	bad[2].key_size = UPT1_RSS_KEY_SIZE + 1;
	bad[3].table_size = 0;
	bad[4].table_size = UPT1_RSS_TABLE_SIZE + 1;
	bad[5].table[0] = QUEUES;
	for (size_t i = 0; i < 6; i++) {
		*nic->conf = bad[i];
		assert_int_equal(guest_activate(nic->g), 1);
		assert_int_equal(vnic_device_state(nic->g->dev), VNIC_DEVICE_DOWN);
	}
	*nic->conf = good;
	info->len--;
	assert_int_equal(guest_activate(nic->g), 1);
	*info = good_info;
	info->addr = GUEST_HIGHER + GUEST_REGION - sizeof(good) + 1;
	assert_int_equal(guest_activate(nic->g), 1);
	info->addr = UINT64_MAX;
	assert_int_equal(guest_activate(nic->g), 1);
	*info = good_info;
	assert_int_equal(guest_activate(nic->g), 0);
}

#define RSS_TEST(f) cmocka_unit_test_setup_teardown(f, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RSS_TEST(test_tcp_ports_are_hashed_by_default),
		RSS_TEST(test_udp_and_esp_fields_are_hashed_on_request),
		RSS_TEST(test_hash_fields_differ_by_ip_version),
		RSS_TEST(test_unlisted_hash_types_are_not_hashed),
		RSS_TEST(test_fragments_are_hashed_by_address_only),
		RSS_TEST(test_truncated_frames_are_hashed_by_what_is_left),
		RSS_TEST(test_frames_other_than_ip_are_not_hashed),
		RSS_TEST(test_hash_covers_a_frame_in_parts),
		RSS_TEST(test_driver_switches_rss_on_while_running),
		RSS_TEST(test_bad_indirection_table_leaves_the_old_one),
		RSS_TEST(test_indirection_table_has_1_to_128_entries),
		RSS_TEST(test_short_rss_key_is_padded_with_zeros),
		RSS_TEST(test_bad_rss_configuration_does_not_activate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
