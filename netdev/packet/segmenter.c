/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <netdev/segmenter.h>

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include <netdev/gso_packet.h>

#include "packet/ip_fields.h"

#define VLAN_LEN 4
#define TCP_LEN  20

/* Offsets in the headers of TCP and SCTP. */
#define TCP_SEQUENCE  4
#define TCP_OFFSET    12
#define TCP_FLAGS     13
#define TCP_CHECKSUM  16
#define SCTP_CHECKSUM 8

#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

/* --- Checksums */

static bool is_tcp(const struct segmenter *s)
{
	return s->checksum == s->transport + TCP_CHECKSUM;
}

/* Sets the checksum of a TCP or UDP header with a payload, `len` bytes, behind an IP header. */
static void set_transport_checksum(const struct segmenter *s, uint8_t *transport, const uint8_t *ip,
				   uint32_t len)
{
	uint8_t *checksum = transport + (s->checksum - s->transport);
	uint64_t sum = len + (is_tcp(s) ? IPPROTO_TCP : IPPROTO_UDP);
	uint16_t value;

	put16(checksum, 0);
	sum = s->ipv4 ? add_words(sum, ip + IPV4_ADDRESSES, 8)
		      : add_words(sum, ip + IPV6_ADDRESSES, 32);
	value = (uint16_t)~fold(add_words(sum, transport, len));
	/* UDP: 0 stands for no checksum. */
	put16(checksum, !value && !is_tcp(s) ? 0xffff : value);
}

/* --- The packet */

static bool has(const struct segmenter *s, uint32_t offset, uint32_t len)
{
	return offset + len <= s->len;
}

/* Returns the EtherType behind the VLAN tags that the packet itself has, and sets the offset behind
 * this type. 0: there is none. */
static uint32_t find_ethertype(struct segmenter *s)
{
	uint32_t type = 0, at = 2 * ETH_ALEN;

	do {
		if (!has(s, at, 2))
			return 0;
		type = get16(s->packet + at);
		at += type == ETH_P_8021Q || type == ETH_P_8021AD ? VLAN_LEN : 2;
	} while (type == ETH_P_8021Q || type == ETH_P_8021AD);
	s->network = at;
	return type;
}

/* The protocol behind the IPv4 header; sets the offset of that protocol's header. -1: none. */
static int find_behind_ipv4(struct segmenter *s)
{
	const uint8_t *ip = s->packet + s->network;
	uint32_t ihl;

	if (!has(s, s->network, IPV4_LEN))
		return -1;
	ihl = (ip[0] & 0xf) * 4u;
	s->transport = s->network + ihl;
	return ihl < IPV4_LEN ? -1 : ip[IPV4_PROTOCOL];
}

/* As find_behind_ipv4, but behind the extension headers (RFC 8200). */
static int find_behind_ipv6(struct segmenter *s)
{
	const uint8_t *header;
	int next;

	if (!has(s, s->network, IPV6_LEN))
		return -1;
	next = s->packet[s->network + IPV6_NEXT];
	s->transport = s->network + IPV6_LEN;
	while (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS) {
		header = s->packet + s->transport;
		if (!has(s, s->transport, 8))
			return -1;
		next = header[0];
		s->transport += (header[1] + 1u) * 8;
	}
	return next;
}

/* The protocol of a GSO type; sets the EtherTypes that it may have. -1: another offload. */
static int protocol_of(uint8_t gso_type, bool *ipv4, bool *ipv6)
{
	gso_type &= (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	*ipv4 = gso_type != VIRTIO_NET_HDR_GSO_TCPV6;
	*ipv6 = gso_type != VIRTIO_NET_HDR_GSO_TCPV4;
	if (gso_type == VIRTIO_NET_HDR_GSO_UDP_L4)
		return IPPROTO_UDP;
	return *ipv4 && *ipv6 ? -1 : IPPROTO_TCP;
}

/* Whether the innermost headers of the packet are those that its GSO type names. */
static bool find_transport(struct segmenter *s, uint8_t gso_type)
{
	uint32_t type = find_ethertype(s);
	bool ipv4, ipv6;
	int protocol = protocol_of(gso_type, &ipv4, &ipv6);

	s->ipv4 = type == ETH_P_IP;
	if (protocol < 0 || !(s->ipv4 ? ipv4 : type == ETH_P_IPV6 && ipv6) ||
	    (s->ipv4 ? find_behind_ipv4(s) : find_behind_ipv6(s)) != protocol)
		return false;
	s->checksum = s->transport + (protocol == IPPROTO_TCP ? TCP_CHECKSUM : UDP_CHECKSUM);
	return true;
}

/* Sets the length of all headers; false: they are not whole, or no payload follows. */
static bool find_payload(struct segmenter *s)
{
	uint32_t len = UDP_LEN;

	if (!has(s, s->transport, is_tcp(s) ? TCP_LEN : UDP_LEN))
		return false;
	if (is_tcp(s))
		len = (s->packet[s->transport + TCP_OFFSET] >> 4) * 4u;
	s->headers = s->transport + len;
	return len >= (is_tcp(s) ? TCP_LEN : UDP_LEN) && s->headers < s->len;
}

/*
 * Finds the headers of a packet that has to be cut; false: it cannot be cut. A packet that GRO has
 * joined has an unfinished checksum (NEEDS_CSUM); a packet that a NIC has joined (LRO) has a
 * finished one. In a tunnel the virtio-net header describes the inner headers, so the packet is
 * refused.
 */
static bool start_gso(struct segmenter *s, const struct virtio_net_hdr *vnet)
{
	s->size = vnet->gso_size;
	return s->size && find_transport(s, vnet->gso_type) &&
	       (!(vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) ||
		(s->transport == vnet->csum_start &&
		 s->checksum == s->transport + vnet->csum_offset)) &&
	       find_payload(s);
}

/* Finds the checksum to finish in a packet that is one frame; false: it cannot be finished. SCTP
 * has a CRC instead, of 32 bits. */
static bool start_checksum(struct segmenter *s, const struct virtio_net_hdr *vnet)
{
	s->transport = vnet->csum_start;
	s->checksum = s->transport + vnet->csum_offset;
	return s->transport >= ETH_HLEN && has(s, s->checksum, 2) &&
	       vnet->csum_offset != SCTP_CHECKSUM;
}

bool segmenter_start(struct segmenter *s, const struct virtio_net_hdr *vnet, const uint16_t *tci,
		     const uint8_t *packet, uint32_t len)
{
	bool good = len >= ETH_HLEN && len <= SEGMENTER_PACKET_MAX;

	*s = (struct segmenter){.packet = packet, .len = len, .tagged = tci, .tci = tci ? *tci : 0};
	if (good && vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		good = start_gso(s, vnet);
	else if (good && vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		good = start_checksum(s, vnet);
	if (!good)
		s->packet = NULL;
	return good;
}

/* --- The frames */

/* Copies the Ethernet header, with the tag; returns its length. */
static uint32_t write_ethernet(const struct segmenter *s, uint8_t *to)
{
	memcpy(to, s->packet, 2 * ETH_ALEN);
	to += 2 * ETH_ALEN;
	if (s->tagged) {
		put16(to, ETH_P_8021Q);
		put16(to + 2, s->tci);
		to += VLAN_LEN;
	}
	memcpy(to, s->packet + 2 * ETH_ALEN, 2);
	return ETH_HLEN + (s->tagged ? VLAN_LEN : 0);
}

/* Writes a packet that is one frame. The field of an unfinished checksum holds the sum of the
 * pseudo header, so the checksum is the sum from the transport header on. */
static void write_whole(const struct segmenter *s, uint8_t *to, uint32_t ethernet)
{
	uint8_t *transport = to + ethernet + s->transport - ETH_HLEN;
	uint16_t value;

	memcpy(to + ethernet, s->packet + ETH_HLEN, s->len - ETH_HLEN);
	if (!s->checksum)
		return;
	value = (uint16_t)~fold(add_words(0, transport, s->len - s->transport));
	put16(transport + (s->checksum - s->transport), value ? value : 0xffff);
}

static void write_ip_lengths(const struct segmenter *s, uint8_t *ip, uint32_t len)
{
	uint32_t header;

	if (!s->ipv4) {
		put16(ip + IPV6_LENGTH, len - IPV6_LEN);
		return;
	}
	header = (ip[0] & 0xf) * 4;
	put16(ip + IPV4_LENGTH, len);
	put16(ip + IPV4_IDENTIFICATION, get16(ip + IPV4_IDENTIFICATION) + s->count);
	put16(ip + IPV4_CHECKSUM, 0);
	put16(ip + IPV4_CHECKSUM, ~fold(add_words(0, ip, header)));
}

static void write_tcp(const struct segmenter *s, uint8_t *tcp, bool last)
{
	put32(tcp + TCP_SEQUENCE, get32(tcp + TCP_SEQUENCE) + s->done);
	if (!last)
		tcp[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (s->count)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
}

static void write_segment(struct segmenter *s, uint8_t *to, uint32_t ethernet, uint32_t payload)
{
	uint8_t *ip = to + ethernet + s->network - ETH_HLEN;
	uint8_t *transport = ip + s->transport - s->network;
	uint32_t transport_len = s->headers - s->transport + payload;

	memcpy(to + ethernet, s->packet + ETH_HLEN, s->headers - ETH_HLEN);
	memcpy(transport + (s->headers - s->transport), s->packet + s->headers + s->done, payload);
	write_ip_lengths(s, ip, s->headers - s->network + payload);
	if (is_tcp(s))
		write_tcp(s, transport, s->done + payload == s->len - s->headers);
	else
		put16(transport + UDP_LENGTH, transport_len);
	set_transport_checksum(s, transport, ip, transport_len);
}

static uint32_t next_payload(const struct segmenter *s)
{
	uint32_t rest = s->len - s->headers - s->done;

	return rest < s->size ? rest : s->size;
}

uint32_t segmenter_next(struct segmenter *s, uint8_t *to, uint32_t room)
{
	uint32_t ethernet, payload, len;

	if (!s->packet)
		return 0;
	payload = s->size ? next_payload(s) : 0;
	len = (s->size ? s->headers + payload : s->len) + (s->tagged ? VLAN_LEN : 0);
	if (len > room)
		return 0;
	ethernet = write_ethernet(s, to);
	if (s->size)
		write_segment(s, to, ethernet, payload);
	else
		write_whole(s, to, ethernet);
	s->done += payload;
	s->count++;
	if (!s->size || s->done == s->len - s->headers)
		s->packet = NULL;
	return len;
}
