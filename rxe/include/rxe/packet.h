/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A parsed RoCE packet.
 *
 * Sources: IBA volume 1, 9.2 to 9.3 (BTH and extended headers), Annex A16
 * (RoCE: EtherType 0x8915, GRH) and Annex A17 (RoCEv2: UDP port 4791).
 * All fields are in host byte order, except addresses and immediate data, which are in network byte
 * order.
 */
#ifndef URXE_RXE_PACKET_H
#define URXE_RXE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/counters.h>

#define URXE_ETHERTYPE_ROCEV1 0x8915
#define URXE_UDP_PORT         4791
#define URXE_ICRC_LEN         4
#define URXE_QPN_MASK         0xffffffu
#define URXE_QPN_GSI          1u        /* general services (IBA 13.5) */
#define URXE_QPN_MULTICAST    0xffffffu /* IBA 10.5.2 */
#define URXE_DEFAULT_PKEY     0xffff    /* IBA 10.9.1.2 */
/* Most bytes that headers and ICRC add to a payload: Ethernet, 802.1Q, IPv6 or GRH, UDP, BTH,
 * extended headers (at most 28, an AtomicETH), ICRC. */
#define URXE_MAX_OVERHEAD (14 + 4 + 40 + 8 + 12 + 28 + URXE_ICRC_LEN)

struct urxe_reference;

enum urxe_net { URXE_NET_ROCEV1, URXE_NET_IPV4, URXE_NET_IPV6 };

/* 128-bit address, network byte order; IPv4 as ::ffff:a.b.c.d. */
struct urxe_gid {
	uint8_t raw[16];
};

struct urxe_packet {
	/* Pointers into the caller's buffer. */
	const uint8_t *l3;      /* IPv4, IPv6 or GRH header */
	const uint8_t *bth;     /* BTH */
	const uint8_t *payload; /* payload, pad not included */
	const uint8_t *icrc;    /* ICRC; the length in the IP header or GRH locates it */
	uint32_t payload_len;   /* bytes, pad not included */
	/* The payload in its sender's memory; NULL: the payload is in the packet. */
	const struct urxe_reference *reference;

	/* Ethernet and network. */
	uint8_t dmac[6];
	uint8_t smac[6];
	bool has_vlan;
	uint16_t vlan_tci; /* of the 802.1Q tag, if has_vlan */
	uint8_t net;       /* enum urxe_net */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label; /* IPv6 and GRH; else 0 */
	uint16_t udp_sport;  /* RoCEv2; else 0 */
	struct urxe_gid sgid;
	struct urxe_gid dgid;

	/* BTH */
	uint8_t opcode;
	bool solicited;
	bool mig_req;
	bool fecn;
	bool becn;
	bool ack_req;
	uint8_t pad; /* 0 to 3 bytes */
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;

	/* Extended headers; only those of the opcode are set. */
	struct {
		uint32_t qkey;
		uint32_t src_qpn;
	} deth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint32_t length; /* bytes of the whole message */
	} reth;
	struct {
		uint8_t placement;   /* urxe_flush_placement bits; 4 bits wide on the wire */
		uint8_t selectivity; /* enum urxe_flush_selectivity; 2 bits wide */
	} feth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint64_t swap_add;
		uint64_t compare;
	} atomic;
	struct {
		uint8_t syndrome;
		uint32_t msn;
	} aeth;
	uint64_t atomic_ack; /* ATOMIC ACKNOWLEDGE: value before the operation */
	uint32_t imm;        /* network byte order */
	uint32_t ieth_rkey;
};

/*
 * Parses one Ethernet frame of len bytes, without checking its ICRC.
 *
 * The packet points into the frame. Fields that determine lengths are read once, so a frame in
 * shared memory may change meanwhile. Returns URXE_DROP_NONE, or why the engine does not accept the
 * frame. Fields parsed before the fault are set; `bth` and `icrc` are NULL if the fault is before
 * them. Thread-safe.
 */
enum urxe_drop urxe_packet_parse(struct urxe_packet *p, const uint8_t *frame, uint32_t len);

/* Whether the ICRC of a parsed packet is right (A17.3.3, A16.5). */
bool urxe_packet_icrc_ok(const struct urxe_packet *p);

#endif
