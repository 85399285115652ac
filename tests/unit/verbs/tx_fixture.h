/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process with a NIC and the inbox of a peer, for tests of engine/tx.h. */
#ifndef URXE_TEST_TX_FIXTURE_H
#define URXE_TEST_TX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "adapter/adapter.h"
#include "craft.h"
#include "engine/crc.h"
#include "engine/tx.h"
#include "samehost/published.h"
#include "vnic_loop.h"

#define MTU  1500
#define LEN  100
#define LONG 1200 /* length of a stream's frames */
#define T0   1000000000ull
/* QPNs. */
#define OURS   0x1000u   /* first of the fixture's process */
#define MORE   0x9000u   /* first of that process's second block */
#define PEER   0x5000u   /* of a process whose inbox is known */
#define FAR    0x7000u   /* of a process whose inbox is not known */
#define MANY   0xffffffu /* multicast */
#define CHOSEN 0xabcdefu /* chosen by an HCA */
#define LOW    0x11u     /* likewise, in block 0, of which the daemon leases nothing */

static struct packet_group *no_uplink;

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 1};

struct fixture {
	struct vnic_loop *loop;
	struct vnic_inbox *inbox;
	struct tx tx;
	uint32_t len;    /* of frames */
	uint8_t next;    /* first byte of the next frame's payload */
	uint8_t seen[8]; /* first bytes of the payloads that arrived */
};

static inline void allow(struct vnic_loop *loop, bool on)
{
	*(uint32_t *)((uint8_t *)loop->bars + VNIC_REG_BYPASS) = on;
}

static inline void dup_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

static inline void meet(struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];

	dup_fds(f->inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, PEER + 7, false, fds), 0);
}

static inline int setup(void **state)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = OURS};
	static struct fixture f;

	f = (struct fixture){.len = LEN};
	memcpy(who.mac, our_mac, 6);
	assert_int_equal(crc_load(), 0);
	assert_int_equal(vnic_loop_open(MTU, &f.loop), 0);
	allow(f.loop, true);
	assert_int_equal(vnic_inbox_create(MTU, &f.inbox), 0);
	adapter_init_peers();
	assert_int_equal(tx_init(&f.tx, f.loop->driver, &no_uplink, &adapter_peers, &who), 0);
	meet(&f);
	*state = &f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	tx_destroy(&f->tx);
	vnic_inbox_destroy(f->inbox);
	vnic_loop_close(f->loop);
	return 0;
}

static inline void make(struct fixture *f, struct urxe_frame *frame, const uint8_t mac[6],
			uint32_t qpn)
{
	assert_true(frame->room >= f->len);
	memset(frame->data, f->next++, f->len);
	memcpy(frame->data, mac, 6);
	frame->len = f->len;
	frame->dest_qpn = qpn;
}

/* Sends a frame to each of n destinations, together. */
static inline bool send_to(struct fixture *f, uint64_t now, const uint8_t *const *macs,
			   const uint32_t *qpns, uint32_t n)
{
	struct urxe_frame frames[TX_BURST];

	assert_int_equal(tx_reserve(&f->tx, now, frames, n), n);
	for (uint32_t i = 0; i < n; i++)
		make(f, &frames[i], macs[i], qpns[i]);
	return tx_send(&f->tx, now, frames, n);
}

/* Sends n frames to the peer. */
static inline bool send_n(struct fixture *f, uint64_t now, uint32_t n)
{
	const uint8_t *macs[TX_BURST];
	uint32_t qpns[TX_BURST];

	for (uint32_t i = 0; i < n; i++) {
		macs[i] = our_mac;
		qpns[i] = PEER;
	}
	return send_to(f, now, macs, qpns, n);
}

static inline uint32_t by_inbox(struct fixture *f, uint32_t max)
{
	struct vnic_frame frames[8];
	uint32_t n = vnic_inbox_rx(f->inbox, frames, max);

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, f->len - URXE_ICRC_LEN);
		f->seen[i] = frames[i].data[f->len - URXE_ICRC_LEN - 1];
	}
	vnic_inbox_rx_release(f->inbox, n);
	return n;
}

static inline uint32_t by_switch(struct fixture *f)
{
	struct vnic_tx_frame frames[8];
	uint32_t n = vnic_device_tx(f->loop->device, 0, frames, 8);

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, f->len);
		f->seen[i] = frames[i].data[f->len - 1];
	}
	vnic_device_tx_done(f->loop->device, 0, n);
	return n;
}

static inline uint64_t counted(const struct fixture *f, enum vnic_bypass_counter counter)
{
	return f->tx.counters[counter];
}

/* --- The ICRC: frames for processes of this host come without it. */

/* A SEND with a right ICRC. */
static inline uint32_t craft(uint8_t frame[CRAFT_MAX], const uint8_t mac[6])
{
	static const uint8_t payload[13] = {1, 2, 3};
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 2),
		.opcode = 4,
		.dest_qpn = FAR,
		.payload = payload,
		.payload_len = sizeof(payload),
		.pad = 3,
	};

	memcpy(p.dmac, mac, 6);
	return craft_frame(frame, &p);
}

/* Sends the crafted frame with wrong bytes in place of its ICRC, if the frame stays on this host.
 */
static inline bool send_crafted(struct fixture *f, uint64_t now, const uint8_t mac[6], uint32_t qpn)
{
	struct urxe_frame frame;
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, mac);

	assert_int_equal(tx_reserve(&f->tx, now, &frame, 1), 1);
	memcpy(frame.data, data, len);
	if (mac == our_mac)
		memset((uint8_t *)frame.data + len - URXE_ICRC_LEN, 0x5a, URXE_ICRC_LEN);
	frame.len = len;
	frame.dest_qpn = qpn;
	return tx_send(&f->tx, now, &frame, 1);
}

/* The switch got n frames that are what was crafted, with the right ICRC. */
static inline void expect_crafted_by_switch(struct fixture *f, const uint8_t mac[6], uint32_t n)
{
	struct vnic_tx_frame frames[8];
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, mac);

	assert_int_equal(vnic_device_tx(f->loop->device, 0, frames, 8), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, len);
		assert_memory_equal(frames[i].data, data, len);
	}
	vnic_device_tx_done(f->loop->device, 0, n);
}

/* --- Virtual machines, whose frames have another MAC. */

/* The inbox is that of a machine's device process. */
static inline void meet_machine(struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];

	dup_fds(f->inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, other_mac, PEER, false, fds), 0);
}

#endif
