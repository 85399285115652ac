/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/frame_text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "common/ether.h"
#include "urxed/switch/classify.h"

/* AETH syndromes (IBA volume 1, 9.7.5.2.1, tables 43 to 46). */
#define SYNDROME_TYPE(s)  ((s)&0xe0)
#define SYNDROME_VALUE(s) ((s)&0x1f)
#define NO_CREDITS        0x1f
enum syndrome_type { SYNDROME_ACK = 0x00, SYNDROME_RNR = 0x20, SYNDROME_NAK = 0x60 };

static void append_text(char text[FRAME_TEXT], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends to the text, and omits what exceeds FRAME_TEXT. */
static void append_text(char text[FRAME_TEXT], const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, FRAME_TEXT - len, fmt, ap);
	va_end(ap);
}

static void append_gid(char text[FRAME_TEXT], const struct urxe_gid *gid, uint8_t net)
{
	char address[INET6_ADDRSTRLEN];

	if (net == URXE_NET_IPV4)
		inet_ntop(AF_INET, gid->raw + 12, address, sizeof(address));
	else
		inet_ntop(AF_INET6, gid->raw, address, sizeof(address));
	append_text(text, "%s", address);
}

static void append_mac(char text[FRAME_TEXT], const uint8_t mac[ETHER_MAC_LEN])
{
	append_text(text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		    mac[5]);
}

void frame_ends(char source[FRAME_TEXT], char destination[FRAME_TEXT], const uint8_t *frame,
		uint32_t len)
{
	struct urxe_packet p;

	source[0] = destination[0] = '\0';
	if (len < ETHER_HDR_LEN) {
		append_text(source, "?");
		append_text(destination, "?");
	} else if (urxe_packet_parse(&p, frame, len) != URXE_DROP_NOT_ROCE && p.bth) {
		append_gid(source, &p.sgid, p.net);
		append_gid(destination, &p.dgid, p.net);
	} else {
		append_mac(source, frame + ETHER_MAC_LEN);
		append_mac(destination, frame);
	}
}

void frame_addresses(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len)
{
	char source[FRAME_TEXT], destination[FRAME_TEXT];

	frame_ends(source, destination, frame, len);
	text[0] = '\0';
	append_text(text, "%s > %s", source, destination);
}

static const char *nak_name(uint8_t value)
{
	static const char *const names[] = {"PSN sequence error", "invalid request",
					    "remote access error", "remote operational error",
					    "invalid RD request"};

	return value < sizeof(names) / sizeof(names[0]) ? names[value] : "reserved";
}

static void append_syndrome(char text[FRAME_TEXT], uint8_t syndrome)
{
	uint8_t value = SYNDROME_VALUE(syndrome);

	switch (SYNDROME_TYPE(syndrome)) {
	case SYNDROME_ACK:
		if (value == NO_CREDITS)
			append_text(text, " ACK");
		else
			append_text(text, " ACK, credit code %u", value);
		break;
	case SYNDROME_RNR: append_text(text, " RNR NAK, timer code %u", value); break;
	case SYNDROME_NAK: append_text(text, " NAK, %s", nak_name(value)); break;
	default: append_text(text, " syndrome 0x%02x", syndrome);
	}
}

static void append_other_frame(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len)
{
	struct frame_class s;

	classify_frame(&s, frame, len);
	switch (s.kind) {
	case FRAME_RUNT: append_text(text, "runt"); break;
	case FRAME_ARP: append_text(text, "ARP"); break;
	case FRAME_ND: append_text(text, "neighbour discovery"); break;
	default: append_text(text, "EtherType 0x%02x%02x", frame[12], frame[13]);
	}
}

static void append_packet(char text[FRAME_TEXT], const struct urxe_packet *p)
{
	const struct urxe_opcode_info *info = &urxe_opcodes[p->opcode];

	if (info->name)
		append_text(text, "%s", info->name);
	else
		append_text(text, "opcode 0x%02x", p->opcode);
	append_text(text, " QP 0x%06x PSN %u", p->dest_qpn, p->psn);
	if (info->flags & URXE_OPF_DETH)
		append_text(text, " from QP 0x%06x", p->deth.src_qpn);
	if (info->flags & URXE_OPF_AETH)
		append_syndrome(text, p->aeth.syndrome);
}

enum urxe_drop frame_parse(struct urxe_packet *p, const uint8_t *frame, uint32_t len)
{
	enum urxe_drop drop = urxe_packet_parse(p, frame, len);

	if (len < ETHER_HDR_LEN)
		return URXE_DROP_NOT_ROCE;
	return !drop && !urxe_packet_icrc_ok(p) ? URXE_DROP_BAD_ICRC : drop;
}

void frame_words(char text[FRAME_TEXT], const uint8_t *frame, uint32_t len)
{
	struct urxe_packet p;
	enum urxe_drop drop = frame_parse(&p, frame, len);

	text[0] = '\0';
	if (drop == URXE_DROP_NOT_ROCE) {
		append_other_frame(text, frame, len);
		return;
	}
	if (!drop || drop == URXE_DROP_BAD_ICRC)
		append_packet(text, &p);
	else
		append_text(text, "RoCE");
	if (drop)
		append_text(text, "; %s: %s", urxe_drop_name(drop), urxe_drop_text(drop));
}
