/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device under what Linux' vmxnet3 (5.4 with revision 3, 6.12 with revision 9) does, access by
 * access: probe, open with two queue pairs, traffic with data rings and offloads, an error and its
 * reset, a new MTU, close. What that driver takes for granted about completions
 * (its BUG_ON conditions) is asserted. Written from the driver's behaviour.
 */
#include "guest.h"
#include "kept_stream.h"
#include "packet_bytes.h"

#include <errno.h>

#define CMD(name) ((uint32_t)VMXNET3_CMD_##name)
#define PAIRS     2
#define PAGE      4096
#define SKB_MAX   3048 /* Linux' size of a head buffer; the rest of a longer frame goes to pages */

/* A ring as Linux counts it: one entry stays free, so that full and empty differ. */
struct cmd_ring {
	struct guest_ring r;
	uint32_t fill, comp;
	uint32_t gen;
};

struct rx_info {
	uint64_t addr;
	uint32_t len;
	bool body;
};

struct linux_queue {
	struct cmd_ring tx, rx[2];
	struct guest_ring tx_comp, rx_comp;
	uint64_t tx_data, rx_data;
	struct rx_info info[2][GUEST_RING];
	uint32_t tx_eop[GUEST_RING]; /* for each first descriptor: the frame's last descriptor */
};

struct nic {
	struct guest *g;
	uint32_t revision; /* the newest that the driver knows */
	uint32_t txdata_size, rxdata_size, mtu;
	struct linux_queue q[PAIRS];
	uint64_t coalesce_addr, groups_addr, rss_addr;
	bool moves; /* the device is replaced before each step of the driver */
	uint8_t got[GUEST_MTU + 18];
};

static uint32_t avail(const struct cmd_ring *ring)
{
	return (ring->comp > ring->fill ? 0 : ring->r.size) + ring->comp - ring->fill - 1;
}

static void advance_fill(struct cmd_ring *ring)
{
	if (++ring->fill == ring->r.size) {
		ring->fill = 0;
		ring->gen ^= 1;
	}
}

static void write_bar0(struct nic *nic, uint32_t offset, uint32_t value)
{
	assert_int_equal(vnic_device_reg_write(nic->g->dev, 0, offset, value), 0);
}

/* --- Probe and open */

static bool knows(const struct nic *nic, uint32_t revision)
{
	return nic->revision >= revision;
}

/* Requests capabilities; the driver goes on with those that it got. */
static uint32_t request_capabilities(struct guest *g, uint32_t wanted)
{
	guest_write(g, VMXNET3_REG_DCR, wanted);
	return guest_command(g, CMD(GET_DCR0_REG));
}

/* All offloads of tunnels are there, and neither other doorbells nor completions out of order. */
static void probe_capabilities(struct guest *g)
{
	uint32_t offered = guest_read(g, VMXNET3_REG_DCR);

	assert_true(guest_read(g, VMXNET3_REG_PTCR) & 1u << 31);
	assert_int_equal(guest_command(g, CMD(GET_DCR0_REG)), 0);
	assert_false(offered & (VMXNET3_CAP_LARGE_BAR | VMXNET3_CAP_OUT_OF_ORDER_RX));
	assert_int_equal(request_capabilities(g, 0x300fc), 0xfc);
}

static void probe(struct nic *nic)
{
	struct guest *g = nic->g;
	uint32_t offered = guest_read(g, VMXNET3_REG_VRRS), newest = nic->revision - 1;

	while (!(offered & 1u << newest))
		newest--;
	assert_int_equal(newest, nic->revision - 1);
	guest_write(g, VMXNET3_REG_VRRS, 1u << newest);
	assert_true(guest_read(g, VMXNET3_REG_UVRS) & 1);
	guest_write(g, VMXNET3_REG_UVRS, 1);
	if (knows(nic, 7))
		probe_capabilities(g);
	if (knows(nic, 6))
		assert_int_equal(guest_command(g, CMD(GET_MAX_QUEUES_CONF)), 8 | 16 << 8);
	if (knows(nic, 9)) {
		assert_int_equal(guest_command(g, CMD(GET_DISABLED_OFFLOADS)), VMXNET3_OFFLOAD_LRO);
		assert_int_equal(guest_command(g, CMD(GET_TSRING_DESC_SIZE)), 0);
	}
	/* MSI-X; the device masks a vector when it fires. */
	assert_int_equal(guest_command(g, CMD(GET_CONF_INTR)), 3);
	assert_int_equal(guest_read(g, VMXNET3_REG_MACL), 0x33221102);
	assert_int_equal(guest_read(g, VMXNET3_REG_MACH), 0x5544);
	assert_true(guest_command(g, CMD(GET_LINK)) & 1);
}

static void create_ring(struct nic *nic, struct cmd_ring *ring)
{
	guest_ring_init(nic->g, &ring->r, GUEST_RING);
}

/* The device that wrote the streams of earlier versions told its driver 256 bytes. */
static bool is_of_kept_state;

static void create_queues(struct nic *nic)
{
	struct guest *g = nic->g;
	const uint32_t sizes = guest_command(g, CMD(GET_TXDATA_DESC_SIZE));

	nic->txdata_size = sizes & 0xffff;
	/* Not more than the driver's struct Vmxnet3_TxDataDesc has (test_command.c). */
	assert_int_equal(nic->txdata_size, 128);
	if (is_of_kept_state)
		nic->txdata_size = 256;
	nic->rxdata_size = knows(nic, 9) ? sizes >> 16 : 128;
	for (uint32_t i = 0; i < PAIRS; i++) {
		struct linux_queue *q = &nic->q[i];

		create_ring(nic, &q->tx);
		guest_ring_init(g, &q->tx_comp, GUEST_RING);
		create_ring(nic, &q->rx[0]);
		create_ring(nic, &q->rx[1]);
		guest_ring_init(g, &q->rx_comp, 2 * GUEST_RING);
		q->tx_data = guest_alloc(g, GUEST_IN_HIGH, GUEST_RING * nic->txdata_size);
		q->rx_data = guest_alloc(g, GUEST_IN_HIGH, GUEST_RING * nic->rxdata_size);
		for (uint32_t j = 0; j < GUEST_RING; j++) {
			q->info[0][j].addr = guest_alloc(g, GUEST_IN_HIGHER, PAGE);
			q->info[1][j].addr = guest_alloc(g, GUEST_IN_HIGHER, PAGE);
		}
	}
	nic->coalesce_addr = guest_alloc(g, GUEST_IN_LOW, 16);
	nic->groups_addr = guest_alloc(g, GUEST_IN_LOW, 12);
	nic->rss_addr = guest_alloc(g, GUEST_IN_LOW, sizeof(struct upt1_rss_conf));
}

static void init_ring(struct cmd_ring *ring)
{
	memset(ring->r.base, 0, ring->r.size * 16ull);
	ring->fill = ring->comp = 0;
	ring->gen = 1;
}

static void post_rx(struct linux_queue *q, uint32_t which)
{
	struct cmd_ring *ring = &q->rx[which];
	const struct rx_info *info = &q->info[which][ring->fill];
	struct vmxnet3_rx_desc *desc = (struct vmxnet3_rx_desc *)ring->r.base + ring->fill;

	desc->addr = info->addr;
	desc->len =
		info->len | (info->body ? VMXNET3_RXD_BODY : 0) | (ring->gen ? VMXNET3_RXD_GEN : 0);
	advance_fill(ring);
}

/*
 * Ring 0: a head buffer, then as many pages as a frame needs, repeatedly; from revision 7 on only
 * head buffers. Ring 1: pages.
 */
static void init_rx(struct nic *nic, struct linux_queue *q)
{
	uint32_t frame = nic->mtu + 18, head = frame < SKB_MAX ? frame : SKB_MAX;
	uint32_t per_frame = 1 + (frame - head + PAGE - 1) / PAGE;

	for (uint32_t i = 0; i < GUEST_RING; i++) {
		bool body = !knows(nic, 7) && i % per_frame;

		q->info[0][i].body = body;
		q->info[0][i].len = body ? PAGE : head;
		q->info[1][i].body = true;
		q->info[1][i].len = PAGE;
	}
	for (uint32_t i = 0; i < 2; i++) {
		init_ring(&q->rx[i]);
		while (avail(&q->rx[i]))
			post_rx(q, i);
	}
	guest_ring_reset(&q->rx_comp);
}

static void fill_queues(struct nic *nic)
{
	struct vmxnet3_tx_queue_desc *tx = guest_at(nic->g, nic->g->shared->misc.queue_desc_addr);
	struct vmxnet3_rx_queue_desc *rx = (struct vmxnet3_rx_queue_desc *)&tx[PAIRS];

	for (uint8_t i = 0; i < PAIRS; i++) {
		struct linux_queue *q = &nic->q[i];

		tx[i].ring_addr = q->tx.r.addr;
		tx[i].data_ring_addr = q->tx_data;
		tx[i].comp_ring_addr = q->tx_comp.addr;
		tx[i].driver_data_addr = ~0ull;
		tx[i].ring_size = tx[i].data_ring_size = tx[i].comp_ring_size = GUEST_RING;
		tx[i].data_desc_size = (uint16_t)nic->txdata_size;
		tx[i].vector = i; /* a pair of queues shares its vector */
		rx[i].ring_addr[0] = q->rx[0].r.addr;
		rx[i].ring_addr[1] = q->rx[1].r.addr;
		rx[i].comp_ring_addr = q->rx_comp.addr;
		rx[i].driver_data_addr = ~0ull;
		rx[i].ring_size[0] = rx[i].ring_size[1] = GUEST_RING;
		rx[i].comp_ring_size = 2 * GUEST_RING;
		rx[i].vector = i;
		rx[i].data_ring_addr = q->rx_data;
		rx[i].data_desc_size = (uint16_t)nic->rxdata_size;
	}
}

static void fill_rss(struct nic *nic)
{
	struct upt1_rss_conf *conf = guest_at(nic->g, nic->rss_addr);

	assert_non_null(conf);
	*conf = (struct upt1_rss_conf){0};
	conf->types = 0xf;
	conf->function = UPT1_RSS_HASH_FUNC_TOEPLITZ;
	conf->key_size = UPT1_RSS_KEY_SIZE;
	conf->table_size = 128;
	for (uint32_t i = 0; i < sizeof(conf->key); i++)
		conf->key[i] = (uint8_t)(i * 37 + 1);
	for (uint32_t i = 0; i < conf->table_size; i++)
		conf->table[i] = (uint8_t)(i % PAIRS);
	nic->g->shared->rss = (struct vmxnet3_variable_conf){1, sizeof(*conf), nic->rss_addr};
}

static void fill_shared(struct nic *nic)
{
	struct vmxnet3_driver_shared *shared = nic->g->shared;
	uint64_t queues = shared->misc.queue_desc_addr;

	memset(shared, 0, sizeof(*shared));
	shared->magic = VMXNET3_REV1_MAGIC;
	shared->misc.driver_info.gos = 2 | 1 << 2;
	shared->misc.driver_info.revisions = 1;
	shared->misc.driver_info.upt_versions = 1;
	shared->misc.driver_data_addr = 0x1234567812345678; /* a virtual address of the driver,
							       which the device does not use */
	shared->misc.driver_data_len = 5000;
	shared->misc.upt_features = UPT1_F_RXCSUM | UPT1_F_LRO | UPT1_F_RXVLAN | UPT1_F_RSS;
	shared->misc.max_rx_sg = 18;
	shared->misc.mtu = nic->mtu;
	shared->misc.queue_desc_addr = queues;
	shared->misc.queue_desc_len = PAIRS * 512;
	shared->misc.tx_queues = shared->misc.rx_queues = PAIRS;
	fill_rss(nic);
	shared->intr.auto_mask = 1;
	shared->intr.vectors = PAIRS + 1;
	shared->intr.event_vector = PAIRS;
	memset(shared->intr.moderation, 8, PAIRS); /* adaptive */
	shared->intr.control = 1;                  /* all vectors disabled until the NIC is open */
	shared->rx_filter.vlan[0] = 1;
	fill_queues(nic);
}

static void set_mc(struct nic *nic)
{
	struct vmxnet3_rx_filter_conf *filter = &nic->g->shared->rx_filter;

	memcpy(guest_at(nic->g, nic->groups_addr),
	       (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1, 1, 0, 0x5e, 0, 0, 1}, 12);
	filter->multicast_len = 12;
	filter->multicast_addr = nic->groups_addr;
	filter->mode = VMXNET3_RXM_UCAST | VMXNET3_RXM_BCAST | VMXNET3_RXM_MCAST;
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(UPDATE_RX_MODE));
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(UPDATE_VLAN_FILTERS));
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(UPDATE_MAC_FILTERS));
	/* The driver unmaps and frees the table at once. */
	memset(guest_at(nic->g, nic->groups_addr), 0xee, 12);
}

/* vmxnet3_set_rss_hash_opt: the driver goes on with the fields that it got. */
static void set_fields(struct nic *nic, uint32_t fields)
{
	if (knows(nic, 7) && fields & VMXNET3_RSS_FIELDS_UDPIP4)
		assert_int_equal(request_capabilities(nic->g, 0xfc | VMXNET3_CAP_UDP_RSS),
				 0xfc | VMXNET3_CAP_UDP_RSS);
	nic->g->shared->rss_fields = fields;
	assert_int_equal(guest_command(nic->g, CMD(SET_RSS_FIELDS)), 0);
	assert_int_equal(guest_command(nic->g, CMD(GET_RSS_FIELDS)), fields);
}

static void activate(struct nic *nic)
{
	struct guest *g = nic->g;

	for (uint32_t i = 0; i < PAIRS; i++) {
		init_ring(&nic->q[i].tx);
		guest_ring_reset(&nic->q[i].tx_comp);
		init_rx(nic, &nic->q[i]);
	}
	fill_shared(nic);
	guest_write(g, VMXNET3_REG_MACL, 0x33221102);
	guest_write(g, VMXNET3_REG_MACH, 0x5544);
	guest_write(g, VMXNET3_REG_DSAL, (uint32_t)g->shared_addr);
	guest_write(g, VMXNET3_REG_DSAH, (uint32_t)(g->shared_addr >> 32));
	assert_int_equal(guest_command(g, CMD(ACTIVATE_DEV)), 0);
	if (knows(nic, 7)) {
		memcpy(&g->shared->command_info, (const uint16_t[]){SKB_MAX, 0, PAGE, 0}, 8);
		guest_write(g, VMXNET3_REG_CMD, CMD(SET_RING_BUFFER_SIZE));
	}
	g->shared->command_info = (struct vmxnet3_variable_conf){1, 16, nic->coalesce_addr};
	guest_write(g, VMXNET3_REG_CMD, CMD(GET_COALESCE));
	if (knows(nic, 4))
		set_fields(nic, VMXNET3_RSS_FIELDS_TCPIP4 | VMXNET3_RSS_FIELDS_TCPIP6);
	for (uint32_t i = 0; i < PAIRS; i++) {
		write_bar0(nic, VMXNET3_REG_RXPROD + 8 * i, nic->q[i].rx[0].fill);
		write_bar0(nic, VMXNET3_REG_RXPROD2 + 8 * i, nic->q[i].rx[1].fill);
	}
	set_mc(nic);
	assert_int_equal(guest_command(g, CMD(GET_LINK)), 10000u << 16 | 1);
	for (uint32_t i = 0; i <= PAIRS; i++)
		guest_mask(g, i, 0);
	g->shared->intr.control &= ~1u;
	memset(g->interrupts, 0, sizeof(g->interrupts));
}

static void quiesce(struct nic *nic)
{
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(QUIESCE_DEV));
	nic->g->shared->intr.control |= 1;
	for (uint32_t i = 0; i <= PAIRS; i++)
		guest_mask(nic->g, i, 1);
}

static void reset(struct nic *nic)
{
	quiesce(nic);
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(RESET_DEV));
	activate(nic);
}

static void move_device(struct nic *nic)
{
	if (nic->moves)
		guest_move(nic->g);
}

/* --- Transmit */

struct skb {
	const uint8_t *data;
	uint32_t len;
	uint32_t head; /* bytes of headers in the data ring; 0 = as many as fit */
	uint32_t frags;
	uint32_t msscof, flags;
};

static uint32_t put_desc(struct linux_queue *q, uint64_t addr, uint32_t len, uint32_t gen)
{
	struct vmxnet3_tx_desc *desc = (struct vmxnet3_tx_desc *)q->tx.r.base + q->tx.fill;
	uint32_t index = q->tx.fill;

	desc->addr = addr;
	desc->len = len | gen << 14;
	desc->flags = 0;
	advance_fill(&q->tx);
	return index;
}

/* The driver first gives all descriptors but the first to the device, then the first. */
static void xmit(struct nic *nic, uint32_t queue, const struct skb *skb)
{
	struct linux_queue *q = &nic->q[queue];
	struct vmxnet3_tx_desc *ring = q->tx.r.base;
	uint32_t start = q->tx.fill, eop, done = skb->head ? skb->head : nic->txdata_size, part;
	uint64_t addr = guest_alloc(nic->g, GUEST_IN_LOW, skb->len);
	struct vnic_tx_frame frame;

	if (done > skb->len)
		done = skb->len;
	memcpy(guest_at(nic->g, addr), skb->data, skb->len);
	memcpy(guest_at(nic->g, q->tx_data + start * nic->txdata_size), skb->data, done);
	eop = put_desc(q, q->tx_data + start * nic->txdata_size, done, q->tx.gen ^ 1);
	for (uint32_t i = skb->frags; done < skb->len; done += part, i--) {
		part = i > 1 ? (skb->len - done) / i : skb->len - done;
		eop = put_desc(q, addr + done, part, q->tx.gen);
	}
	ring[eop].flags = VMXNET3_TXD_CQ | VMXNET3_TXD_EOP;
	ring[start].len |= skb->msscof << 18;
	ring[start].flags |= skb->flags;
	/* Until then the device returns no frame. */
	assert_int_equal(vnic_device_tx(nic->g->dev, queue, &frame, 1), 0);
	ring[start].len ^= VMXNET3_TXD_GEN;
	q->tx_eop[start] = eop;
	write_bar0(nic, VMXNET3_REG_TXPROD + 8 * queue, q->tx.fill);
}

/* Returns the number of completed frames. */
static uint32_t tx_complete(struct nic *nic, uint32_t queue)
{
	struct linux_queue *q = &nic->q[queue];
	const struct vmxnet3_tx_comp *comp = q->tx_comp.base;
	uint32_t n = 0;

	move_device(nic);
	for (; comp[q->tx_comp.next].gen >> 31 == q->tx_comp.gen; n++) {
		uint32_t eop = comp[q->tx_comp.next].index & 0xfff;

		/* The oldest frame, and its last descriptor, with EOP. */
		assert_int_equal(eop, q->tx_eop[q->tx.comp]);
		assert_true(((struct vmxnet3_tx_desc *)q->tx.r.base)[eop].flags & VMXNET3_TXD_EOP);
		q->tx.comp = (eop + 1) % q->tx.r.size;
		guest_advance(&q->tx_comp);
	}
	return n;
}

/* --- Receive */

static struct vmxnet3_rx_queue_desc *rx_shared(const struct nic *nic, uint32_t queue)
{
	struct vmxnet3_tx_queue_desc *tx = guest_at(nic->g, nic->g->shared->misc.queue_desc_addr);

	return (struct vmxnet3_rx_queue_desc *)&tx[PAIRS] + queue;
}

/* Where a completion says the data are; checks what Linux assumes. */
static const uint8_t *completed_data(const struct nic *nic, uint32_t queue, uint32_t *ring_number,
				     const struct vmxnet3_rx_comp *comp)
{
	const struct linux_queue *q = &nic->q[queue];
	uint32_t rqid = guest_rqid(comp), index = comp->index & 0xfff;
	uint32_t ring = rqid == queue + PAIRS, len = comp->len & VMXNET3_RCD_LEN;
	const struct rx_info *info = &q->info[ring][index];
	const struct vmxnet3_rx_desc *desc =
		(const struct vmxnet3_rx_desc *)q->rx[ring].r.base + index;

	assert_true(rqid == queue || rqid == queue + PAIRS || rqid == queue + 2 * PAIRS);
	assert_int_equal(desc->addr, info->addr);
	assert_int_equal(desc->len & VMXNET3_RXD_LEN, info->len);
	assert_int_equal(comp->gen >> 24 & 0x7f, VMXNET3_CDTYPE_RXCOMP);
	if (comp->index & VMXNET3_RCD_SOP)
		assert_true(!info->body && ring == 0);
	else
		assert_true(info->body);
	*ring_number = ring;
	if (rqid != queue + 2 * PAIRS) {
		assert_true(len && len <= info->len);
		return guest_at(nic->g, info->addr);
	}
	assert_true(len <= nic->rxdata_size);
	return guest_at(nic->g, q->rx_data + index * nic->rxdata_size);
}

/*
 * Assembles the next frame in nic->got and returns its length, 0 = none. *last is its last
 * completion.
 */
static uint32_t rx_complete(struct nic *nic, uint32_t queue, struct vmxnet3_rx_comp *last)
{
	struct linux_queue *q = &nic->q[queue];
	const struct vmxnet3_rx_comp *comps = q->rx_comp.base;
	uint32_t len = 0;

	move_device(nic);
	while (comps[q->rx_comp.next].gen >> 31 == q->rx_comp.gen) {
		uint32_t ring, part;
		const uint8_t *data;

		*last = comps[q->rx_comp.next];
		data = completed_data(nic, queue, &ring, last);
		assert_int_equal(!!(last->index & VMXNET3_RCD_SOP), len == 0);
		part = last->len & VMXNET3_RCD_LEN;
		assert_true(len + part <= sizeof(nic->got));
		memcpy(nic->got + len, data, part);
		len += part;
		/* All descriptors up to this one, also skipped ones, go back to the device. */
		q->rx[ring].comp = last->index & 0xfff;
		while (avail(&q->rx[ring]))
			post_rx(q, ring);
		if (rx_shared(nic, queue)->update_prod && !(q->rx[ring].fill & 0xf))
			write_bar0(nic,
				   (ring ? VMXNET3_REG_RXPROD2 : VMXNET3_REG_RXPROD) + 8 * queue,
				   q->rx[ring].fill);
		guest_advance(&q->rx_comp);
		if (last->index & VMXNET3_RCD_EOP)
			return len;
	}
	assert_int_equal(len, 0);
	return 0;
}

/* --- The tests */

static int open_nic(void **state, uint32_t revision)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	nic->g = guest_create(PAIRS, PAIRS);
	nic->revision = revision;
	nic->mtu = 1500;
	probe(nic);
	create_queues(nic);
	activate(nic);
	*state = nic;
	return 0;
}

static int open_old(void **state)
{
	return open_nic(state, 3);
}

static int open_new(void **state)
{
	return open_nic(state, 9);
}

static int open_moving(void **state)
{
	const int rc = open_nic(state, 9);

	((struct nic *)*state)->moves = true;
	return rc;
}

static int close_nic(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[60] = {2};

	quiesce(nic);
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), -ENETDOWN);
	guest_destroy(nic->g);
	free(nic);
	return 0;
}

static void make_frame(uint8_t *frame, uint32_t len, uint32_t number)
{
	memset(frame, (int)number, len);
	memcpy(frame,
	       (const uint8_t[]){2, 0x11, 0x22, 0x33, 0x44, 0x55, 2, 9, 9, 9, 9, 9, 0x88, 0xb5},
	       14);
}

static void test_linux_driver_opens_the_nic(void **state)
{
	struct nic *nic = *state;
	const struct vmxnet3_coalesce_scheme *scheme = guest_at(nic->g, nic->coalesce_addr);

	assert_int_equal(scheme->mode, VMXNET3_COALESCE_DISABLED);
	assert_int_equal(vnic_device_state(nic->g->dev), VNIC_DEVICE_ACTIVE);
	assert_int_equal(vnic_device_tx_queues(nic->g->dev), PAIRS);
	assert_int_equal(guest_command(nic->g, CMD(UPDATE_PMCFG)), 0);
}

/* Small frames lie in the data ring, long ones only in part; for several laps of all rings. */
static void test_linux_driver_sends_and_receives(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[1514];
	struct vmxnet3_rx_comp last;

	for (uint32_t i = 0; i < 5 * GUEST_RING; i++) {
		uint32_t queue = i % PAIRS, len = 60 + i * 37 % (1514 - 60 + 1);
		struct skb skb = {.data = frame, .len = len, .frags = 1 + i % 3};
		struct vnic_tx_frame sent;

		make_frame(frame, len, i);
		xmit(nic, queue, &skb);
		assert_int_equal(vnic_device_tx(nic->g->dev, queue, &sent, 1), 1);
		assert_int_equal(sent.len, len);
		assert_memory_equal(sent.data, frame, len);
		vnic_device_tx_done(nic->g->dev, queue, 1);
		vnic_device_flush(nic->g->dev);
		assert_int_equal(nic->g->interrupts[queue], 2 * (i / PAIRS) + 1);
		assert_int_equal(tx_complete(nic, queue), 1);
		guest_mask(nic->g, queue, 0);

		assert_int_equal(vnic_device_rx(nic->g->dev, queue, frame, len), 0);
		vnic_device_flush(nic->g->dev);
		assert_int_equal(nic->g->interrupts[queue], 2 * (i / PAIRS) + 2);
		assert_int_equal(rx_complete(nic, queue, &last), len);
		assert_memory_equal(nic->got, frame, len);
		assert_int_equal(guest_rqid(&last), len <= 128 ? queue + 2 * PAIRS : queue);
		assert_int_equal(rx_complete(nic, queue, &last), 0);
		guest_mask(nic->g, queue, 0);
		nic->g->used[GUEST_IN_LOW] = 0x300000; /* buffers come from this address again */
	}
	guest_command(nic->g, CMD(GET_STATS));
	assert_int_equal(rx_shared(nic, 1)->stats[UPT1_RX_UCAST], 5 * GUEST_RING / PAIRS);
}

/* A ring full of received frames: further frames wait, and arrive when there are buffers again. */
static void test_frames_wait_for_receive_buffers(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[200];
	struct vmxnet3_rx_comp last;
	uint32_t given = 0, got = 0;

	for (uint32_t round = 0; round < 4; round++) {
		make_frame(frame, sizeof(frame), given);
		while (vnic_device_rx(nic->g->dev, 1, frame, sizeof(frame)) == 0)
			make_frame(frame, sizeof(frame), ++given);
		assert_int_equal(rx_shared(nic, 1)->update_prod, 1);
		while (rx_complete(nic, 1, &last))
			assert_int_equal(nic->got[199], (uint8_t)got++);
		assert_int_equal(got, given);
	}
	/* Linux posts buffers up to the entry that completed last, without that entry. */
	assert_int_equal(given, GUEST_RING - 1 + 3 * (GUEST_RING - 2));
}

/* A large send of the network stack: headers with the pseudo-header's sum, many fragments. */
static void test_linux_driver_sends_tso_packets(void **state)
{
	static uint8_t packet[54 + 60000];
	struct nic *nic = *state;
	struct skb skb = {.data = packet,
			  .len = sizeof(packet),
			  .head = 54,
			  .frags = 17,
			  .msscof = 1446,
			  .flags = VMXNET3_OM_TSO | 54 | VMXNET3_TXD_TI | 7u << 16};
	uint32_t seen = 0, n;
	struct vnic_tx_frame frames[8];

	make_frame(packet, sizeof(packet), 1);
	put16(packet + 12, 0x0800);
	packet[14] = 0x45;
	packet[20] = packet[21] = 0; /* no fragment */
	packet[23] = 6;
	packet[46] = 0x50;
	xmit(nic, 1, &skb);
	while ((n = vnic_device_tx(nic->g->dev, 1, frames, 8))) {
		for (uint32_t i = 0; i < n; i++, seen++) {
			assert_int_equal(frames[i].len,
					 58 + (seen < 41 ? 1446 : 60000 - 41 * 1446));
			assert_memory_equal(frames[i].data + 12, "\x81\x00\x00\x07", 4);
		}
		assert_int_equal(tx_complete(nic, 1), 0);
		vnic_device_tx_done(nic->g->dev, 1, n);
	}
	assert_int_equal(seen, 42);
	assert_int_equal(tx_complete(nic, 1), 1);
}

static void test_linux_driver_filters_groups_and_vlans(void **state)
{
	struct nic *nic = *state;
	struct vmxnet3_rx_comp last;
	uint8_t frame[64];

	make_frame(frame, sizeof(frame), 0);
	memcpy(frame, (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}, 6);
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	assert_int_equal(rx_complete(nic, 0, &last), 64);
	frame[5] = 2;
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	assert_int_equal(rx_complete(nic, 0, &last), 0);
	/* A VLAN interface is opened. */
	make_frame(frame, sizeof(frame), 0);
	memcpy(frame + 12, "\x81\x00\x20\x09", 4);
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	assert_int_equal(rx_complete(nic, 0, &last), 0);
	nic->g->shared->rx_filter.vlan[0] |= 1u << 9;
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(UPDATE_VLAN_FILTERS));
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	assert_int_equal(rx_complete(nic, 0, &last), 60);
	assert_int_equal(last.len, 60 | VMXNET3_RCD_TS | 0x2009u << 16);
}

/* vmxnet3_process_events, then vmxnet3_reset_work. */
static void test_linux_driver_recovers_from_a_queue_error(void **state)
{
	struct nic *nic = *state;
	struct linux_queue *q = &nic->q[0];
	struct vnic_tx_frame frame;

	for (uint32_t round = 0; round < 3; round++) {
		put_desc(q, 1, 60, q->tx.gen); /* in no memory */
		assert_int_equal(vnic_device_tx(nic->g->dev, 0, &frame, 1), 0);
		assert_int_equal(nic->g->interrupts[PAIRS], 1);
		assert_int_equal(guest_read(nic->g, VMXNET3_REG_ECR), VMXNET3_ECR_TQERR);
		guest_write(nic->g, VMXNET3_REG_ECR, VMXNET3_ECR_TQERR);
		guest_write(nic->g, VMXNET3_REG_CMD, CMD(GET_QUEUE_STATUS));
		reset(nic);
		test_linux_driver_sends_and_receives(state);
	}
}

/* The link goes down and up: after the event Linux asks for its state. */
static void test_linux_driver_learns_link_changes(void **state)
{
	struct nic *nic = *state;

	vnic_device_set_link(nic->g->dev, 0);
	assert_int_equal(nic->g->interrupts[PAIRS], 1);
	assert_int_equal(nic->g->shared->ecr, VMXNET3_ECR_LINK);
	guest_write(nic->g, VMXNET3_REG_ECR, nic->g->shared->ecr);
	assert_int_equal(guest_command(nic->g, CMD(GET_LINK)), 0);
	guest_mask(nic->g, PAIRS, 0);
	vnic_device_set_link(nic->g->dev, 25000);
	assert_int_equal(nic->g->interrupts[PAIRS], 2);
	assert_int_equal(guest_command(nic->g, CMD(GET_LINK)) >> 16, 25000);
}

/* vmxnet3_change_mtu: a frame takes a head buffer and two pages. */
static void test_linux_driver_receives_jumbo_frames(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[9014];
	struct vmxnet3_rx_comp last;

	nic->mtu = 9000;
	reset(nic);
	for (uint32_t i = 0; i < 3 * GUEST_RING; i++) {
		uint32_t len =
			i % 4 ? sizeof(frame) - i : 1000; /* the frame does not need all pages */

		make_frame(frame, len, i);
		assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, len), 0);
		assert_int_equal(rx_complete(nic, 0, &last), len);
		assert_memory_equal(nic->got, frame, len);
	}
	make_frame(frame, sizeof(frame), 3);
	xmit(nic, 0, &(struct skb){.data = frame, .len = sizeof(frame), .frags = 3});
	assert_int_equal(vnic_device_tx(nic->g->dev, 0, &(struct vnic_tx_frame){0}, 1), 1);
}

/* A UDP datagram's queue, and the type and value of its hash. */
static uint32_t receive_datagram(struct nic *nic, uint32_t port, struct vmxnet3_rx_comp *comp)
{
	uint8_t frame[64];

	make_frame(frame, sizeof(frame), 0);
	put16(frame + 12, 0x0800);
	frame[14] = 0x45;
	put16(frame + 16, 50);
	frame[23] = 17;
	put16(frame + 34, port);
	assert_int_equal(vnic_device_rx(nic->g->dev, 1, frame, sizeof(frame)), 0);
	if (rx_complete(nic, 0, comp))
		return 0;
	assert_int_equal(rx_complete(nic, 1, comp), sizeof(frame));
	return 1;
}

/* ethtool -N ... rx-flow-hash udp4 sdfn, then ethtool -X: the table of a NIC in use. */
static void test_linux_driver_changes_the_udp_hash(void **state)
{
	struct nic *nic = *state;
	struct upt1_rss_conf *conf = guest_at(nic->g, nic->rss_addr);
	uint32_t seen[PAIRS] = {0}, hash;
	struct vmxnet3_rx_comp comp;

	receive_datagram(nic, 1, &comp);
	assert_int_equal((comp.index & VMXNET3_RCD_RSS) >> 26, VMXNET3_RCD_RSS_TYPE_IPV4);
	hash = comp.rss_hash;
	receive_datagram(nic, 2, &comp);
	assert_int_equal(comp.rss_hash, hash);
	set_fields(nic, 0x3 | VMXNET3_RSS_FIELDS_UDPIP4 | VMXNET3_RSS_FIELDS_UDPIP6);
	for (uint32_t port = 0; port < 64; port++) {
		uint32_t queue = receive_datagram(nic, port, &comp);

		assert_int_equal((comp.index & VMXNET3_RCD_RSS) >> 26,
				 VMXNET3_RCD_RSS_TYPE_UDPIPV4);
		assert_int_equal(queue, comp.rss_hash % 128 % PAIRS);
		seen[queue]++;
	}
	assert_true(seen[0] && seen[1]);
	for (uint32_t i = 0; i < 128; i++)
		conf->table[i] = 1;
	guest_write(nic->g, VMXNET3_REG_CMD, CMD(UPDATE_RSSIDT));
	for (uint32_t port = 0; port < 64; port++)
		assert_int_equal(receive_datagram(nic, port, &comp), 1);
}

/* The frames that the device was sending are completed, and lost. */
static void test_frames_sent_during_a_move_are_completed(void **state)
{
	static uint8_t packet[54 + 60000];
	struct nic *nic = *state;
	struct vnic_tx_frame frames[8];

	make_frame(packet, sizeof(packet), 1);
	put16(packet + 12, 0x0800);
	packet[14] = 0x45;
	packet[20] = packet[21] = 0; /* no fragment */
	packet[23] = 6;
	packet[46] = 0x50;
	xmit(nic, 1,
	     &(struct skb){.data = packet,
			   .len = sizeof(packet),
			   .head = 54,
			   .frags = 17,
			   .msscof = 1446,
			   .flags = VMXNET3_OM_TSO | 54});
	assert_int_equal(vnic_device_tx(nic->g->dev, 1, frames, 8), 8);
	guest_move(nic->g);
	assert_int_equal(tx_complete(nic, 1), 1);
	assert_int_equal(vnic_device_tx(nic->g->dev, 1, frames, 8), 0);
	xmit(nic, 1, &(struct skb){.data = packet, .len = 60});
	assert_int_equal(vnic_device_tx(nic->g->dev, 1, frames, 8), 1);
	assert_memory_equal(frames[0].data, packet, 60);
	vnic_device_tx_done(nic->g->dev, 1, 1);
	assert_int_equal(tx_complete(nic, 1), 1);
}

/* A vector that is masked at the move raises its interrupt when the driver unmasks it. */
static void test_masked_interrupt_survives_a_move(void **state)
{
	struct nic *nic = *state;
	struct vmxnet3_rx_comp last;
	uint8_t frame[60];

	make_frame(frame, sizeof(frame), 1);
	guest_mask(nic->g, 0, 1);
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	vnic_device_flush(nic->g->dev);
	memset(nic->g->interrupts, 0, sizeof(nic->g->interrupts));
	guest_move(nic->g);
	assert_int_equal(nic->g->interrupts[0], 0);
	/* A driver with queues whose interrupts are not masked has each raised once. */
	assert_int_equal(nic->g->interrupts[1], 1);
	guest_mask(nic->g, 0, 0);
	assert_int_equal(nic->g->interrupts[0], 1);
	assert_int_equal(rx_complete(nic, 0, &last), sizeof(frame));
	assert_memory_equal(nic->got, frame, sizeof(frame));
}

/* A vector that the device has masked: its interrupt may not have reached the guest. */
static void test_lost_interrupt_is_raised_after_a_move(void **state)
{
	struct nic *nic = *state;
	uint8_t frame[60];

	make_frame(frame, sizeof(frame), 1);
	assert_int_equal(vnic_device_rx(nic->g->dev, 0, frame, sizeof(frame)), 0);
	vnic_device_flush(nic->g->dev);
	assert_int_equal(nic->g->interrupts[0], 1);
	guest_move(nic->g);
	assert_int_equal(nic->g->interrupts[0], 2);
	/* A driver that masks the vector has got the interrupt. */
	guest_mask(nic->g, 0, 1);
	guest_move(nic->g);
	assert_int_equal(nic->g->interrupts[0], 2);
}

static void test_damaged_saved_state_is_refused(void **state)
{
	struct nic *nic = *state;
	uint8_t *stream;
	size_t length;

	vnic_device_pause(nic->g->dev);
	assert_int_equal(vnic_device_save(nic->g->dev, &stream, &length), 0);
	for (size_t n = 0; n < length; n += 7)
		assert_int_equal(vnic_device_restore(nic->g->dev, stream, n), -EBADMSG);
	for (size_t i = 0; i < length; i += 3) {
		stream[i] ^= 1;
		assert_int_not_equal(vnic_device_restore(nic->g->dev, stream, length), 0);
		stream[i] ^= 1;
	}
	assert_int_equal(vnic_device_state(nic->g->dev), VNIC_DEVICE_DOWN);
	assert_int_equal(vnic_device_restore(nic->g->dev, stream, length), 0);
	assert_int_equal(vnic_device_state(nic->g->dev), VNIC_DEVICE_ACTIVE);
	free(stream);
}

#define NIC_TEST(f)                                              \
	cmocka_unit_test_setup_teardown(f, open_old, close_nic), \
		cmocka_unit_test_setup_teardown(f, open_new, close_nic)

/* --- Streams of earlier versions of the device's state: vVERSION/nic. */

static void exchange_frames(struct nic *nic, uint32_t n)
{
	uint8_t frame[1514];
	struct vmxnet3_rx_comp last;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t queue = i % PAIRS, len = 60 + i * 37 % (1514 - 60 + 1);
		struct skb skb = {.data = frame, .len = len, .frags = 1 + i % 3};
		struct vnic_tx_frame sent;

		make_frame(frame, len, i);
		xmit(nic, queue, &skb);
		assert_int_equal(vnic_device_tx(nic->g->dev, queue, &sent, 1), 1);
		assert_memory_equal(sent.data, frame, len);
		vnic_device_tx_done(nic->g->dev, queue, 1);
		assert_int_equal(vnic_device_rx(nic->g->dev, queue, frame, len), 0);
		vnic_device_flush(nic->g->dev);
		assert_int_equal(tx_complete(nic, queue), 1);
		assert_int_equal(rx_complete(nic, queue, &last), len);
		assert_memory_equal(nic->got, frame, len);
		guest_mask(nic->g, queue, 0);
		nic->g->used[GUEST_IN_LOW] = 0x300000; /* buffers come from this address again */
	}
}

/* The driver in a state in which no ring is at its beginning. */
static void build_kept_state(struct nic *nic)
{
	exchange_frames(nic, 11);
}

static void check_kept_state(struct nic *nic, uint32_t version, uint32_t *newest)
{
	uint8_t *saved, *kept;
	size_t length;

	build_kept_state(nic);
	guest_save(nic->g, &saved, &length);
	*newest = kept_stream_version(saved);
	free(saved);
	kept = kept_stream_of_version(NIC_STATES, version, "nic", &length);
	guest_restore(nic->g, kept, length);
	free(kept);
	exchange_frames(nic, 5 * GUEST_RING);
}

static void test_saved_states_of_each_version_are_restored(void **state)
{
	(void)state;
	is_of_kept_state = true;
	for (uint32_t version = 1, newest = 1; version <= newest; version++) {
		void *nic;

		open_new(&nic);
		check_kept_state(nic, version, &newest);
		close_nic(&nic);
	}
	is_of_kept_state = false;
}

static int write_state(const char *path)
{
	void *state;
	uint8_t *stream;
	size_t length;
	struct nic *nic;

	is_of_kept_state = true;
	open_new(&state);
	nic = state;
	build_kept_state(nic);
	guest_save(nic->g, &stream, &length);
	kept_stream_write(path, stream, length);
	free(stream);
	return close_nic(&state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		NIC_TEST(test_linux_driver_opens_the_nic),
		NIC_TEST(test_linux_driver_sends_and_receives),
		NIC_TEST(test_frames_wait_for_receive_buffers),
		NIC_TEST(test_linux_driver_sends_tso_packets),
		NIC_TEST(test_linux_driver_filters_groups_and_vlans),
		NIC_TEST(test_linux_driver_recovers_from_a_queue_error),
		NIC_TEST(test_linux_driver_learns_link_changes),
		NIC_TEST(test_linux_driver_receives_jumbo_frames),
		cmocka_unit_test_setup_teardown(test_linux_driver_changes_the_udp_hash, open_new,
						close_nic),
		cmocka_unit_test_setup_teardown(test_frames_wait_for_receive_buffers, open_moving,
						close_nic),
		cmocka_unit_test_setup_teardown(test_linux_driver_filters_groups_and_vlans,
						open_moving, close_nic),
		cmocka_unit_test_setup_teardown(test_linux_driver_receives_jumbo_frames,
						open_moving, close_nic),
		cmocka_unit_test_setup_teardown(test_linux_driver_changes_the_udp_hash, open_moving,
						close_nic),
		NIC_TEST(test_frames_sent_during_a_move_are_completed),
		NIC_TEST(test_masked_interrupt_survives_a_move),
		NIC_TEST(test_lost_interrupt_is_raised_after_a_move),
		NIC_TEST(test_damaged_saved_state_is_refused),
		cmocka_unit_test(test_saved_states_of_each_version_are_restored),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_state(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
