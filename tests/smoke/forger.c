/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaches to the urxed of a run directory and sends what it may not, past libibverbs
 * and the engine, to itself; then one datagram that it may send. That alone arrives.
 */
#include <err.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/driver.h>

#include "craft.h"

#define UD_SEND_ONLY 0x64
#define RC_SEND_ONLY 0x04
#define RC_ACK       0x11
#define UC_SEND_ONLY 0x24
#define GID_INDEX    1 /* IPv4 */
#define PATIENCE_MS  5000
#define QUIET_MS     200

static struct vnic_attach_welcome who;
static struct vnic_driver *drv;

static struct urxe_packet honest(void)
{
	static const uint8_t payload[16];
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.pkey = URXE_DEFAULT_PKEY,
		.hop_limit = 64,
		.dest_qpn = who.qpn_first + 1,
		.deth = {.qkey = 0x11111111, .src_qpn = who.qpn_first},
		.payload = payload,
		.payload_len = sizeof(payload),
	};

	memcpy(p.dmac, who.mac, sizeof(p.dmac));
	memcpy(p.smac, who.mac, sizeof(p.smac));
	memcpy(p.sgid.raw, who.port.gids[GID_INDEX].raw, sizeof(p.sgid.raw));
	p.dgid = p.sgid;
	return p;
}

static void send_frame(const uint8_t *frame, uint32_t len)
{
	struct vnic_frame buffer;

	if (!vnic_driver_tx_reserve(drv, &buffer, 1))
		errx(1, "no transmit buffer");
	buffer.len = len;
	memcpy(buffer.data, frame, len);
	vnic_driver_tx_commit(drv, &buffer, 1);
}

static void send_packet(const struct urxe_packet *p)
{
	uint8_t frame[CRAFT_MAX];

	send_frame(frame, craft_frame(frame, p));
}

/* A station that says that the host's address is its own: of ARP only the headers matter. */
static void forge_arp(void)
{
	uint8_t frame[64] = {[12] = 0x08, [13] = 0x06, [15] = 1, [16] = 0x08, [18] = 6, 4, 0, 2};

	memset(frame, 0xff, 6);
	memcpy(frame + 6, who.mac, 6);
	send_frame(frame, sizeof(frame)); /* not_roce */
}

static void forge_fragment(void)
{
	const struct urxe_packet p = honest();
	uint8_t frame[CRAFT_MAX];
	uint32_t len = craft_frame(frame, &p);

	frame[14 + 6] |= 0x20;  /* more follow (RFC 791, 3.1) */
	send_frame(frame, len); /* malformed */
}

static void forge_addresses(void)
{
	struct urxe_packet p = honest();

	p.sgid.raw[15] ^= 1;
	send_packet(&p); /* spoofed_ip */
	p.net = URXE_NET_ROCEV1;
	send_packet(&p); /* spoofed_ip, in a GRH */
	p = honest();
	p.has_vlan = true;
	p.vlan_tci = 7;
	send_packet(&p); /* spoofed_ip, for the host is not in that VLAN */
	p = honest();
	memset(p.sgid.raw, 0xff, sizeof(p.sgid.raw));
	p.net = URXE_NET_IPV6;
	send_packet(&p); /* spoofed_ip: a group sends nothing */
}

static void forge_macs(void)
{
	struct urxe_packet p = honest();

	p.smac[5] ^= 1;
	send_packet(&p); /* spoofed_mac */
	p.smac[0] |= 1;
	send_packet(&p); /* spoofed_mac, a group's */
}

/* What says nothing of its sender needs a connection. */
static void forge_connections(void)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, RC_ACK, UC_SEND_ONLY};
	struct urxe_packet p = honest();

	for (uint32_t i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		send_packet(&p); /* unregistered */
	}
}

static void forge_qpns(void)
{
	struct urxe_packet p = honest();

	p.deth.src_qpn += who.qpn_count;
	send_packet(&p); /* spoofed_qpn */
	p.deth.src_qpn = URXE_QPN_GSI;
	send_packet(&p); /* management */
	p = honest();
	p.dest_qpn = URXE_QPN_GSI;
	send_packet(&p); /* management */
}

static uint32_t receive(int milliseconds)
{
	struct pollfd pfd = {vnic_driver_irq_fd(drv), POLLIN, 0};
	struct vnic_frame frame;
	uint32_t n = 0;

	if (!vnic_driver_irq_unmask(drv) && poll(&pfd, 1, milliseconds) < 0)
		err(1, "poll");
	while (vnic_driver_rx(drv, &frame, 1)) {
		n++;
		vnic_driver_rx_release(drv, 1);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct urxe_packet p;

	if (argc != 2)
		errx(2, "usage: forger RUN_DIR");
	if (vnic_driver_attach(argv[1], &who, &drv))
		errx(1, "cannot attach");
	p = honest();
	forge_macs();
	forge_addresses();
	forge_qpns();
	forge_connections();
	forge_arp();
	forge_fragment();
	send_packet(&p);
	/* Frames stay in order: what was forged has been looked at when this one is here. */
	if (receive(PATIENCE_MS) != 1)
		errx(1, "not exactly the honest datagram arrived");
	if (receive(QUIET_MS))
		errx(1, "a forged packet arrived");
	vnic_driver_detach(drv);
	return 0;
}
