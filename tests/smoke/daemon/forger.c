/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaches to the urxed of a run directory without libibverbs and the engine, and sends forged
 * frames to itself, then one permitted datagram. Only the datagram may arrive.
 */
#include <err.h>
#include <stdint.h>
#include <string.h>

#include "raw.h"

#define UD_SEND_ONLY 0x64
#define RC_SEND_ONLY 0x04
#define RC_ACK       0x11
#define UC_SEND_ONLY 0x24
#define PATIENCE_MS  60000
#define QUIET_MS     200

static struct raw raw;

static struct urxe_packet honest(void)
{
	static const uint8_t payload[16];
	struct urxe_packet p = raw_packet(&raw);

	p.opcode = UD_SEND_ONLY;
	p.dest_qpn = raw.who.qpn_first + 1;
	p.deth.qkey = 0x11111111;
	p.deth.src_qpn = raw.who.qpn_first;
	p.payload = payload;
	p.payload_len = sizeof(payload);
	return p;
}

/* ARP that claims the host's address. The switch looks at the Ethernet header only. */
static void forge_arp(void)
{
	uint8_t frame[64] = {[12] = 0x08, [13] = 0x06, [15] = 1, [16] = 0x08, [18] = 6, 4, 0, 2};

	memset(frame, 0xff, 6);
	memcpy(frame + 6, raw.who.mac, 6);
	raw_send_frame(&raw, frame, sizeof(frame)); /* not_roce */
}

static void forge_fragment(void)
{
	const struct urxe_packet p = honest();
	uint8_t frame[CRAFT_MAX];
	uint32_t len = craft_frame(frame, &p);

	frame[14 + 6] |= 0x20;            /* flag "more fragments" (RFC 791, 3.1) */
	raw_send_frame(&raw, frame, len); /* malformed */
}

static void forge_addresses(void)
{
	struct urxe_packet p = honest();

	p.sgid.raw[15] ^= 1;
	raw_send(&raw, &p); /* spoofed_ip */
	p.net = URXE_NET_ROCEV1;
	raw_send(&raw, &p); /* spoofed_ip, in a GRH */
	p = honest();
	p.has_vlan = true;
	p.vlan_tci = 7;
	raw_send(&raw, &p); /* spoofed_ip: the host is not in that VLAN */
	p = honest();
	memset(p.sgid.raw, 0xff, sizeof(p.sgid.raw));
	p.net = URXE_NET_IPV6;
	raw_send(&raw, &p); /* spoofed_ip: a multicast address as the source */
}

static void forge_macs(void)
{
	struct urxe_packet p = honest();

	p.smac[5] ^= 1;
	raw_send(&raw, &p); /* spoofed_mac */
	p.smac[0] |= 1;
	raw_send(&raw, &p); /* spoofed_mac: a multicast address as the source */
}

/* RC and UC packets do not name their sender, so urxed requires a registered connection. */
static void forge_connections(void)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, RC_ACK, UC_SEND_ONLY};
	struct urxe_packet p = honest();

	for (uint32_t i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		raw_send(&raw, &p); /* unregistered */
	}
}

static void forge_qpns(void)
{
	struct urxe_packet p = honest();

	p.deth.src_qpn += raw.who.qpn_count;
	raw_send(&raw, &p); /* spoofed_qpn */
	p.deth.src_qpn = URXE_QPN_GSI;
	raw_send(&raw, &p); /* management */
	p = honest();
	p.dest_qpn = URXE_QPN_GSI;
	raw_send(&raw, &p); /* management */
}

int main(int argc, char **argv)
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p;

	if (argc != 2)
		errx(2, "usage: forger RUN_DIR");
	raw_open(&raw, argv[1]);
	p = honest();
	forge_macs();
	forge_addresses();
	forge_qpns();
	forge_connections();
	forge_arp();
	forge_fragment();
	raw_send(&raw, &p);
	/* Frames stay in order: urxed has checked all forged frames when the datagram arrives. */
	if (!raw_receive(&raw, frame, PATIENCE_MS))
		errx(1, "the honest datagram did not arrive");
	if (raw_receive(&raw, frame, QUIET_MS))
		errx(1, "a forged packet arrived");
	raw_close(&raw);
	return 0;
}
