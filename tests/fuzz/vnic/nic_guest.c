/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "nic_guest.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/regs.h>

#include "require.h"

#define RING   96 /* more descriptors than a frame may have */
#define MTU    2000
#define LOW    0x1000u
#define HIGH   0x80000000ull /* two adjacent regions after a hole */
#define HIGHER (HIGH + NIC_REGION)
#define BURST  24

enum { /* layout of an honest driver's structures in LOW */
       SHARED = LOW,
       RSS_CONF = LOW + 0x300,
       QUEUE_DESC = LOW + 0x400,
       RINGS = LOW + 0x1000,
       TX_BYTES = RING * 16,
       QUEUE_BYTES = 6 * TX_BYTES,
};

/* --- The guest's memory */

static uint8_t *at(const struct nic_guest *g, uint64_t addr, uint32_t size)
{
	for (size_t i = 0; i < 3; i++) {
		uint64_t offset = addr - g->regions[i].addr;

		if (offset < g->regions[i].size && size <= g->regions[i].size - offset)
			return (uint8_t *)g->regions[i].memory + offset;
	}
	return NULL;
}

static bool in_memory(const struct nic_guest *g, const uint8_t *data)
{
	for (size_t i = 0; i < 3; i++) {
		const uint8_t *start = g->regions[i].memory;

		if (data >= start && data < start + g->regions[i].size)
			return true;
	}
	return false;
}

static void store(const struct nic_guest *g, uint64_t addr, const void *data, uint32_t size)
{
	uint8_t *to = at(g, addr, size);

	if (to)
		memcpy(to, data, size);
}

/* An address: mostly in memory, sometimes near its border, sometimes any address. */
static uint64_t get_addr(struct script *in)
{
	static const uint64_t places[] = {LOW,
					  HIGH,
					  HIGHER,
					  HIGHER - 64,
					  HIGHER + NIC_REGION - 256,
					  LOW + NIC_REGION - 256,
					  0,
					  UINT64_MAX - 0xffff};
	uint8_t choice = script_get8(in);

	return places[choice % 8] + (choice & 8 ? script_get8(in) : script_get16(in));
}

static struct vmxnet3_tx_queue_desc *tx_desc(const struct nic_guest *g, uint32_t queue)
{
	return (void *)at(g, QUEUE_DESC + queue * 256, 256);
}

static struct vmxnet3_rx_queue_desc *rx_desc(const struct nic_guest *g, uint32_t queue)
{
	return (void *)at(g, QUEUE_DESC + (NIC_QUEUES + queue) * 256, 256);
}

/* --- An honest driver's set-up */

static void set_up_queues(struct nic_guest *g, bool data_rings)
{
	uint64_t next = RINGS;

	for (uint32_t i = 0; i < NIC_QUEUES; i++) {
		*tx_desc(g, i) = (struct vmxnet3_tx_queue_desc){
			.ring_addr = next,
			.comp_ring_addr = next + TX_BYTES,
			.ring_size = RING,
			.comp_ring_size = RING,
			.vector = (uint8_t)i,
		};
		g->tx[i] = (struct nic_ring){next, 0, true};
		*rx_desc(g, i) = (struct vmxnet3_rx_queue_desc){
			.ring_addr = {next + 2 * TX_BYTES, next + 3 * TX_BYTES},
			.comp_ring_addr = next + 4 * TX_BYTES,
			.ring_size = {RING, RING},
			.comp_ring_size = 2 * RING,
			.vector = (uint8_t)(NIC_QUEUES + i),
			.data_ring_addr = HIGH + i * RING * 64,
			.data_desc_size = data_rings ? 64 : 0,
		};
		g->rx[i][0] = (struct nic_ring){next + 2 * TX_BYTES, 0, true};
		g->rx[i][1] = (struct nic_ring){next + 3 * TX_BYTES, 0, true};
		next += QUEUE_BYTES;
	}
}

static uint32_t command(struct nic_guest *g, uint32_t cmd)
{
	uint32_t result = 0;

	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_CMD, cmd) == 0);
	require(vnic_device_reg_read(g->dev, 1, VMXNET3_REG_CMD, &result) == 0);
	return result;
}

static void unmask_all(struct nic_guest *g)
{
	for (uint32_t i = 0; i < VMXNET3_MAX_INTRS; i++)
		require(vnic_device_reg_write(g->dev, 0, VMXNET3_REG_IMR + 8 * i, 0) == 0);
}

static struct upt1_rss_conf honest_rss(void)
{
	struct upt1_rss_conf conf = {
		.types = 0xf,
		.function = UPT1_RSS_HASH_FUNC_TOEPLITZ,
		.key_size = UPT1_RSS_KEY_SIZE,
		.table_size = UPT1_RSS_TABLE_SIZE,
	};

	for (uint32_t i = 0; i < UPT1_RSS_TABLE_SIZE; i++)
		conf.table[i] = (uint8_t)(i % NIC_QUEUES);
	memset(conf.key, 0x5a, sizeof(conf.key));
	return conf;
}

static uint32_t activate(struct nic_guest *g, uint32_t mode, uint32_t features)
{
	struct vmxnet3_driver_shared shared = {
		.magic = VMXNET3_REV1_MAGIC,
		.misc = {.upt_features = features,
			 .queue_desc_addr = QUEUE_DESC,
			 .mtu = MTU,
			 .tx_queues = NIC_QUEUES,
			 .rx_queues = NIC_QUEUES},
		.intr = {.auto_mask = 1,
			 .vectors = 2 * NIC_QUEUES + 1,
			 .event_vector = 2 * NIC_QUEUES},
		.rx_filter = {.mode = mode, .vlan = {0x11}},
		.rss = {1, sizeof(struct upt1_rss_conf), RSS_CONF},
	};
	const struct upt1_rss_conf rss = honest_rss();
	uint32_t result;

	memset(at(g, RINGS, NIC_QUEUES * QUEUE_BYTES), 0, NIC_QUEUES * QUEUE_BYTES);
	store(g, SHARED, &shared, sizeof(shared));
	store(g, RSS_CONF, &rss, sizeof(rss));
	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_DSAL, SHARED) == 0);
	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_DSAH, 0) == 0);
	result = command(g, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV);
	unmask_all(g);
	return result;
}

/* --- Actions of a guest */

static void advance(struct nic_ring *ring)
{
	if (++ring->next == RING) {
		ring->next = 0;
		ring->gen = !ring->gen;
	}
}

static void post_tx(struct nic_guest *g, uint32_t queue, struct vmxnet3_tx_desc desc)
{
	struct nic_ring *ring = &g->tx[queue];

	desc.len = (desc.len & ~VMXNET3_TXD_GEN) | (ring->gen ? VMXNET3_TXD_GEN : 0);
	store(g, ring->addr + ring->next * 16, &desc, sizeof(desc));
	advance(ring);
}

static void do_post_tx(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);
	struct vmxnet3_tx_desc desc = {.addr = get_addr(&g->in)};

	desc.len = choice & 0x10 ? script_get32(&g->in) : script_get16(&g->in) & 0x7ff;
	desc.flags = choice & 0x20 ? script_get32(&g->in) : VMXNET3_TXD_EOP | VMXNET3_TXD_CQ;
	post_tx(g, choice % NIC_QUEUES, desc);
}

/* Posts a TCP packet with headers, which the offloads parse. */
static void do_post_packet(struct nic_guest *g)
{
	static const uint8_t ip4[] = {0x08, 0x00, 0x45, 0,  0, 0, 0, 0,  0, 0, 64,
				      6,    0,    0,    10, 0, 0, 1, 10, 0, 0, 2};
	static const uint8_t ip6[] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64};
	uint8_t choice = script_get8(&g->in);
	uint32_t l4 = choice & 1 ? 54 : 34, queue = choice / 16 % NIC_QUEUES,
		 pieces = choice / 4 % 4;
	uint32_t mss = script_get16(&g->in) & 0x3fff, len = script_get16(&g->in) & 0x3fff;
	uint64_t addr = HIGH + script_get8(&g->in);
	uint32_t flags = (choice & 2 ? VMXNET3_OM_TSO | (l4 + 20) : VMXNET3_OM_CSUM | l4) |
			 (choice & 0x80 ? VMXNET3_TXD_TI : 0);

	/* Sometimes more descriptors than a packet may have. */
	if (pieces == 3)
		pieces = script_get8(&g->in) % RING;
	store(g, addr + 12, choice & 1 ? ip6 : ip4, choice & 1 ? sizeof(ip6) : sizeof(ip4));
	store(g, addr + l4 + 12, &(uint8_t){0x50}, 1);
	post_tx(g, queue, (struct vmxnet3_tx_desc){addr, (l4 + 20) | mss << 18, flags});
	for (uint32_t i = 0; i < pieces; i++)
		post_tx(g, queue, (struct vmxnet3_tx_desc){addr + l4 + 20, len, 0});
	post_tx(g, queue,
		(struct vmxnet3_tx_desc){addr, len | 1, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ});
}

/*
 * Posts a packet in a VXLAN or Geneve packet, with one wrong byte at most. The headers: Ethernet,
 * IPv4, UDP, the tunnel's, and the inner Ethernet, IP and TCP or UDP.
 */
static void do_post_tunnel(struct nic_guest *g)
{
	enum { UDP_PORT = 36, TUNNEL = 42, INNER_TYPE = 62, INNER = 64, HEADERS = INNER + 60 };
	static const uint8_t outer[] = {0x08, 0x00, 0x45, 0,  0, 0, 0, 0,  0, 0, 64,
					17,   0,    0,    10, 0, 0, 1, 10, 0, 0, 2};
	uint8_t packet[HEADERS] = {0}, choice = script_get8(&g->in);
	uint8_t wrong = script_get8(&g->in), value = script_get8(&g->in);
	uint32_t l4 = INNER + (choice & 1 ? 40 : 20), at = l4 + (choice & 2 ? 6 : 16);
	uint32_t mss = choice & 4 ? script_get16(&g->in) & 0x3fff : 0, word = 0, flags;
	uint64_t addr = HIGH + script_get8(&g->in);

	memcpy(packet + 12, outer, sizeof(outer));
	memcpy(packet + UDP_PORT, choice & 8 ? "\x12\xb5" : "\x17\xc1", 2);
	memcpy(packet + TUNNEL + 2, "\x65\x58", 2);
	memcpy(packet + INNER_TYPE, choice & 1 ? "\x86\xdd\x60" : "\x08\x00\x45", 3);
	packet[INNER + (choice & 1 ? 6 : 9)] = choice & 2 ? 17 : 6;
	packet[l4 + 12] = 0x50;
	if (wrong < sizeof(packet))
		packet[wrong] = value;
	store(g, addr, packet, sizeof(packet));
	flags = l4 + 20;
	if (choice & 0x10) { /* as revision 7 wants it */
		word = VMXNET3_TXD_EXT1 | (mss ? mss : at) << 18;
		flags |= mss ? VMXNET3_OM_TSO : VMXNET3_OM_CSUM;
	} else {
		word = mss << 18;
		flags |= VMXNET3_OM_ENCAP;
	}
	if (choice & 0x20)
		word |= VMXNET3_TXD_OCO;
	post_tx(g, choice / 64 % NIC_QUEUES, (struct vmxnet3_tx_desc){addr, HEADERS | word, flags});
	post_tx(g, choice / 64 % NIC_QUEUES,
		(struct vmxnet3_tx_desc){HIGH, 1u + script_get16(&g->in) % 0x3fff,
					 VMXNET3_TXD_EOP | VMXNET3_TXD_CQ});
}

static void do_post_rx(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);
	struct nic_ring *ring = &g->rx[choice % NIC_QUEUES][choice >> 7];
	struct vmxnet3_rx_desc desc = {.addr = get_addr(&g->in)};
	uint32_t word = choice & 0x10 ? script_get32(&g->in) : 64 + script_get8(&g->in) * 16u;

	if (choice & 0x88)
		word |= VMXNET3_RXD_BODY;
	desc.len = (word & ~VMXNET3_RXD_GEN) | (ring->gen ? VMXNET3_RXD_GEN : 0);
	store(g, ring->addr + ring->next * 16, &desc, sizeof(desc));
	advance(ring);
}

static void do_write_memory(struct nic_guest *g)
{
	uint64_t addr = get_addr(&g->in);
	uint8_t bytes[16];
	uint32_t size = script_get8(&g->in) % sizeof(bytes) + 1;

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = script_get8(&g->in);
	store(g, addr, bytes, size);
}

static void do_register(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);
	uint32_t offset = (choice & 0x3f) * 8 + (choice & 0x40 ? 0x600 : 0),
		 value = script_get32(&g->in);

	if (choice & 0x80)
		vnic_device_reg_read(g->dev, value & 3, offset, &value);
	else
		vnic_device_reg_write(g->dev, offset < 0x50 ? 1 : 0, offset, value);
}

static void do_command(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);

	command(g, (choice & 0x80 ? 0xf00d0000 : 0xcafe0000) + (choice & 0x1f));
}

#define IN_SHARED(field) (SHARED + offsetof(struct vmxnet3_driver_shared, field))
#define IN_RSS(field)    (RSS_CONF + offsetof(struct upt1_rss_conf, field))
#define IN_TX(field)     (QUEUE_DESC + offsetof(struct vmxnet3_tx_queue_desc, field))
#define IN_RX(field)     (QUEUE_DESC + NIC_QUEUES * 256 + offsetof(struct vmxnet3_rx_queue_desc, field))

/* Sets a field of the shared area or of a queue's descriptor to a wrong value. */
static void misconfigure(struct nic_guest *g)
{
	static const uint64_t places[] = {
		IN_SHARED(misc.queue_desc_addr),
		IN_TX(ring_addr),
		IN_TX(comp_ring_addr),
		IN_RX(ring_addr[0]),
		IN_RX(ring_addr[1]),
		IN_RX(comp_ring_addr),
		IN_RX(data_ring_addr),
		IN_SHARED(rss.addr),
	};
	static const uint64_t fields[] = {
		IN_SHARED(magic),
		IN_SHARED(misc.mtu),
		IN_SHARED(misc.tx_queues),
		IN_SHARED(misc.rx_queues),
		IN_SHARED(intr.vectors),
		IN_SHARED(intr.auto_mask),
		IN_SHARED(ecr),
		IN_SHARED(intr.event_vector),
		IN_TX(ring_size),
		IN_TX(comp_ring_size),
		IN_TX(vector),
		IN_RX(ring_size[0]),
		IN_RX(ring_size[1]),
		IN_RX(comp_ring_size),
		IN_RX(vector),
		IN_RX(data_desc_size),
		IN_SHARED(misc.upt_features),
		IN_SHARED(rss.len),
		IN_RSS(types),
		IN_RSS(function),
		IN_RSS(key_size),
		IN_RSS(table_size),
		IN_RSS(key),
		IN_RSS(table),
	};
	uint8_t choice = script_get8(&g->in), size = script_get8(&g->in) % 4 + 1;
	uint64_t value =
		choice < 64 ? get_addr(&g->in) & ~(size > 1 ? 511ull : 0) : script_get32(&g->in);

	if (choice < 64)
		store(g, places[choice % (sizeof(places) / sizeof(places[0]))], &value, 8);
	else if (choice < 128)
		store(g, fields[choice % (sizeof(fields) / sizeof(fields[0]))], &value, size);
	else
		store(g, SHARED + (choice - 128) * 4u, &value, size);
}

/* The wrong value takes effect when the guest activates the NIC. */
static void do_misconfigure(struct nic_guest *g)
{
	misconfigure(g);
	if (script_get8(&g->in) & 1)
		command(g, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV);
}

/* Changes the fields that RSS hashes, and its table if the guest has changed that. */
static void do_rss(struct nic_guest *g)
{
	uint32_t fields = script_get8(&g->in);

	misconfigure(g);
	store(g, IN_SHARED(rss_fields), &fields, sizeof(fields));
	command(g, (uint32_t)VMXNET3_CMD_SET_RSS_FIELDS);
	command(g,
		(uint32_t)(fields & 0x40 ? VMXNET3_CMD_UPDATE_RSSIDT : VMXNET3_CMD_UPDATE_FEATURE));
}

/* Changes the tables that commands copy: multicast filter, and interrupt coalescing. */
static void do_tables(struct nic_guest *g)
{
	struct vmxnet3_variable_conf info = {.version = 1, .len = 16, .addr = get_addr(&g->in)};
	uint16_t len = (uint16_t)script_get16(&g->in);

	store(g, IN_SHARED(rx_filter.multicast_addr), &info.addr, sizeof(info.addr));
	store(g, IN_SHARED(rx_filter.multicast_len), &len, sizeof(len));
	store(g, IN_SHARED(command_info), &info, sizeof(info));
	command(g, (uint32_t)VMXNET3_CMD_UPDATE_MAC_FILTERS);
	command(g, (uint32_t)(len & 1 ? VMXNET3_CMD_SET_COALESCE : VMXNET3_CMD_GET_COALESCE));
}

/* --- Actions of the host */

static uint32_t sum_of(const uint8_t *data, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += data[i];
	return sum;
}

static void do_act(struct nic_guest *g);

static void do_transmit(struct nic_guest *g)
{
	struct vnic_tx_frame frames[BURST], again[BURST];
	uint8_t choice = script_get8(&g->in), meddle = script_get8(&g->in);
	uint32_t queue = choice % (NIC_QUEUES + 1), sums[BURST], sum = 0;
	uint32_t want = choice / 4 % BURST + 1, n = vnic_device_tx(g->dev, queue, frames, want), m;

	require(n <= want);
	for (uint32_t i = 0; i < n; i++) {
		require(frames[i].len >= VNIC_ETH_HEADER && frames[i].len <= VNIC_FRAME_MAX(MTU));
		sums[i] = sum_of(frames[i].data, frames[i].len);
	}
	/* The guest may change its memory at any time. */
	if (meddle & 1)
		do_write_memory(g);
	if (meddle & 2)
		misconfigure(g);
	m = vnic_device_tx(g->dev, queue, again, n);
	require(m == n || vnic_device_state(g->dev) != VNIC_DEVICE_ACTIVE);
	for (uint32_t i = 0; i < m; i++) {
		require(again[i].data == frames[i].data && again[i].len == frames[i].len);
		sum = sum_of(again[i].data, again[i].len);
		/* The guest cannot change frames that the device has copied. */
		require(sum == sums[i] || in_memory(g, again[i].data));
	}
	if (meddle & 4)
		do_act(g);
	vnic_device_tx_done(g->dev, queue, meddle & 8 ? n : n / 2);
}

static void do_receive(struct nic_guest *g)
{
	static const uint8_t macs[4][6] = {
		{2, 3, 4, 5, 6, 7}, {1, 0, 0x5e, 1, 2, 3}, {255, 255, 255, 255, 255, 255}, {6}};
	uint8_t frame[VNIC_FRAME_MAX(MTU) + 8], choice = script_get8(&g->in);
	uint32_t len = script_get16(&g->in) % sizeof(frame), cut = script_get8(&g->in) + 1u, head;
	struct iovec parts[2];
	int ret;

	memset(frame, choice, sizeof(frame));
	memcpy(frame, macs[choice % 4], 6);
	head = script_get8(&g->in) % 64;
	/* Mostly IP, for checksums and RSS. */
	memcpy(frame + 12, choice & 0x10 ? "\x86\xdd\x60\0\0\0\0\x10" : "\x08\0\x45\0\0\x20\0\0",
	       8);
	frame[choice & 0x10 ? 20 : 23] = choice & 0x20 ? 17 : choice & 0x40 ? 50 : 6;
	for (uint32_t i = 0; i < head; i++)
		frame[12 + i] = script_get8(&g->in);
	if (cut > len)
		cut = len;
	parts[0] = (struct iovec){frame, cut};
	parts[1] = (struct iovec){frame + cut, len - cut};
	ret = vnic_device_rxv(g->dev, script_get8(&g->in), parts, cut == len ? 1 : 2);
	require(ret == 0 || ret == -ENOBUFS || ret == -EMSGSIZE || ret == -EINVAL ||
		ret == -ENETDOWN);
}

static void do_host(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);

	switch (choice % 4) {
	case 0: vnic_device_set_link(g->dev, choice & 4 ? 0 : 10000); break;
	case 1: vnic_device_set_asleep(g->dev, choice & 4); break;
	case 2: vnic_device_wants_multicast(g->dev); break;
	default: vnic_device_flush(g->dev);
	}
}

/* An action of the guest alone, which may happen during a call of the host. */
static void do_act(struct nic_guest *g)
{
	uint8_t choice = script_get8(&g->in);

	switch (choice % 6) {
	case 0: do_post_tx(g); break;
	case 1: do_post_rx(g); break;
	case 2: do_write_memory(g); break;
	case 3: do_misconfigure(g); break;
	case 4: do_post_packet(g); break;
	default:
		if (choice & 0x40)
			do_post_tunnel(g);
		else
			unmask_all(g);
	}
}

static void interrupt(void *ctx, uint32_t vector)
{
	struct nic_guest *g = ctx;

	require(vector < VMXNET3_MAX_INTRS);
	g->interrupts++;
	/* Not while the guest unmasks interrupts, which would recurse without end. */
	if (g->meddling && script_get8(&g->in) & 1) {
		g->meddling = false;
		do_write_memory(g);
		g->meddling = true;
	}
}

/* Mostly without RSS, whose tables take most of the time. */
static void do_activate(struct nic_guest *g)
{
	const uint8_t mode = script_get8(&g->in), features = script_get8(&g->in);

	activate(g, mode, features & 0xc0 ? features & ~(uint32_t)UPT1_F_RSS : features);
}

void nic_guest_step(struct nic_guest *g)
{
	switch (script_get8(&g->in) % 12) {
	case 0:
		switch (script_get8(&g->in) & 3) {
		case 0: do_register(g); break;
		case 2: do_rss(g); break;
		default: do_tables(g);
		}
		break;
	case 1: do_command(g); break;
	case 2: do_activate(g); break;
	case 3:
	case 4: do_transmit(g); break;
	case 5:
	case 6: do_receive(g); break;
	case 7: do_host(g); break;
	default: do_act(g);
	}
}

void nic_guest_recover(struct nic_guest *g)
{
	const uint8_t frame[60] = {2, 3, 4, 5, 6, 7, 8};
	struct vmxnet3_rx_desc desc = {HIGHER, 128 | VMXNET3_RXD_GEN, 0};
	struct vnic_tx_frame sent;

	g->meddling = false;
	vnic_device_set_link(g->dev, 10000);
	command(g, (uint32_t)VMXNET3_CMD_RESET_DEV);
	set_up_queues(g, false);
	require(activate(g, VMXNET3_RXM_UCAST, 0) == 0);
	store(g, HIGH, frame, sizeof(frame));
	post_tx(g, 1,
		(struct vmxnet3_tx_desc){HIGH, sizeof(frame), VMXNET3_TXD_EOP | VMXNET3_TXD_CQ});
	require(vnic_device_tx(g->dev, 1, &sent, 1) == 1 && sent.len == sizeof(frame));
	require(memcmp(sent.data, frame, sizeof(frame)) == 0);
	vnic_device_tx_done(g->dev, 1, 1);
	store(g, g->rx[0][0].addr, &desc, sizeof(desc));
	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_MACL, 0x05040302) == 0);
	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_MACH, 0x0706) == 0);
	require(vnic_device_rx(g->dev, 0, frame, sizeof(frame)) == 0);
	require(memcmp(at(g, HIGHER, 60), frame, sizeof(frame)) == 0);
	require(vnic_device_counters(g->dev)[VNIC_INTERRUPTS] == g->interrupts);
}

static void *memory(size_t size)
{
	void *p = aligned_alloc(4096, size);

	require(p);
	return memset(p, 0, size);
}

void nic_guest_open(struct nic_guest *g, bool shared_mac)
{
	static const uint64_t places[3] = {LOW, HIGH, HIGHER};
	struct vnic_device_attr attr = {
		.regions = g->regions,
		.region_count = 3,
		.mac = {2, 3, 4, 5, 6, 7},
		.mtu = MTU,
		.shared_mac = shared_mac,
		.interrupt = interrupt,
		.ctx = g,
	};

	for (size_t i = 0; i < 3; i++)
		g->regions[i] = (struct vnic_region){places[i], NIC_REGION, memory(NIC_REGION)};
	attr.bars = g->bars = memory(VNIC_BAR_SIZE);
	g->meddling = true;
	g->interrupts = 0;
	require(vnic_device_create(&attr, &g->dev) == 0);
}

void nic_guest_start(struct nic_guest *g, uint8_t choice)
{
	static const uint32_t revisions[3] = {VMXNET3_REV_2, VMXNET3_REV_6, VMXNET3_REV_9};

	g->meddling = false;
	command(g, (uint32_t)VMXNET3_CMD_RESET_DEV);
	require(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_VRRS, revisions[choice / 2 % 3]) == 0);
	set_up_queues(g, choice & 0x40);
	require(activate(g, choice & 0x80 ? 0x1f : 0x0f, choice / 8 & 0xf) == 0);
	g->meddling = true;
}

void nic_guest_close(struct nic_guest *g)
{
	vnic_device_destroy(g->dev);
	for (size_t i = 0; i < 3; i++)
		free(g->regions[i].memory);
	free(g->bars);
}
