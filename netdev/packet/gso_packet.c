/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <netdev/gso_packet.h>

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "packet/ip_fields.h"

/* In front of a segment: its headers, and a VLAN tag. A multiple of 16, for the copies. */
#define FRAME_ROOM 80
#define ALIGNMENT  64
/* The longest packet that the kernel passes, including the Ethernet header. */
#define LONGEST (ETH_HLEN + UINT16_MAX)
#define MEMORY  (LONGEST + GSO_SEGMENTS * (FRAME_ROOM + ALIGNMENT))

static bool is_ipv4(const uint8_t *frame)
{
	return get16(frame + 12) == ETH_P_IP;
}

uint32_t gso_headers(const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + ETH_HLEN;

	if (len < GSO_HEADERS)
		return 0;
	if (is_ipv4(frame) && ip[0] == 0x45 && ip[IPV4_PROTOCOL] == IPPROTO_UDP)
		return ETH_HLEN + IPV4_LEN + UDP_LEN;
	if (get16(frame + 12) == ETH_P_IPV6 && ip[IPV6_NEXT] == IPPROTO_UDP)
		return ETH_HLEN + IPV6_LEN + UDP_LEN;
	return 0;
}

/* Sets the lengths for `payload` bytes behind the UDP header. */
static void set_lengths(uint8_t *headers, uint32_t payload)
{
	uint8_t *ip = headers + ETH_HLEN;

	if (is_ipv4(headers)) {
		put16(ip + IPV4_LENGTH, IPV4_LEN + UDP_LEN + payload);
		put16(ip + IPV4_LEN + UDP_LENGTH, UDP_LEN + payload);
	} else {
		put16(ip + IPV6_LENGTH, UDP_LEN + payload);
		put16(ip + IPV6_LEN + UDP_LENGTH, UDP_LEN + payload);
	}
}

/* --- Sending */

uint32_t gso_count(const struct packet_port_frame *frames, uint32_t n)
{
	uint32_t headers = gso_headers(frames[0].data, frames[0].len), count = 1;
	uint32_t bytes = frames[0].len, len = frames[0].len;

	/* A frame shorter than the first ends the packet. */
	while (headers && count < n && count < GSO_SEGMENTS && frames[count].continues &&
	       frames[count - 1].len == len && frames[count].len <= len &&
	       frames[count].len > headers && bytes + frames[count].len - headers <= GSO_BYTES)
		bytes += frames[count++].len - headers;
	return count;
}

static void set_ipv4_checksum(uint8_t *ip)
{
	put16(ip + IPV4_CHECKSUM, 0);
	put16(ip + IPV4_CHECKSUM, ~fold(add_words(0, ip, IPV4_LEN)));
}

/* Sets the UDP checksum to the sum of the pseudo header, which the kernel completes for each
 * segment. */
static void set_udp_checksum(uint8_t *udp, const uint8_t *addresses)
{
	uint32_t addresses_len = (uint32_t)(udp - addresses);

	put16(udp + UDP_CHECKSUM,
	      fold(add_words(IPPROTO_UDP + get16(udp + UDP_LENGTH), addresses, addresses_len)));
}

uint32_t gso_write_headers(const struct packet_port_frame *frames, uint32_t n,
			   uint8_t headers[GSO_HEADERS], struct virtio_net_hdr *vnet)
{
	uint32_t len = gso_headers(frames[0].data, frames[0].len);
	uint8_t *ip = headers + ETH_HLEN, *udp = headers + len - UDP_LEN;
	uint32_t payload = 0;

	memcpy(headers, frames[0].data, len);
	for (uint32_t i = 0; i < n; i++)
		payload += frames[i].len - len;
	set_lengths(headers, payload);
	if (is_ipv4(headers))
		set_ipv4_checksum(ip);
	set_udp_checksum(udp, ip + (is_ipv4(headers) ? IPV4_ADDRESSES : IPV6_ADDRESSES));
	*vnet = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = (uint16_t)len,
		.gso_size = (uint16_t)(frames[0].len - len),
		.csum_start = (uint16_t)(udp - headers),
		.csum_offset = UDP_CHECKSUM,
	};
	return len;
}

/* --- Receiving */

bool gso_packet_create(struct gso_packet *packet)
{
	*packet = (struct gso_packet){
		.memory = aligned_alloc(ALIGNMENT, MEMORY / ALIGNMENT * ALIGNMENT)};
	return packet->memory;
}

void gso_packet_destroy(struct gso_packet *packet)
{
	free(packet->memory);
	*packet = (struct gso_packet){0};
}

bool gso_packet_start(struct gso_packet *packet, const struct virtio_net_hdr *vnet,
		      const uint8_t *start, uint32_t known, uint32_t len)
{
	uint32_t headers = gso_headers(start, known), size = vnet->gso_size;

	packet->count = packet->next = 0;
	if (!packet->memory || vnet->gso_type != VIRTIO_NET_HDR_GSO_UDP_L4 || !headers || !size ||
	    len <= headers || len > LONGEST)
		return false;
	memcpy(packet->headers, start, headers);
	packet->headers_len = headers;
	packet->size = size;
	packet->length = len - headers;
	packet->stride = (FRAME_ROOM + size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return (packet->length + size - 1) / size <= GSO_SEGMENTS;
}

static uint8_t *segment_at(const struct gso_packet *packet, uint32_t i)
{
	return packet->memory + i * packet->stride + FRAME_ROOM;
}

static uint32_t segment_len(const struct gso_packet *packet, uint32_t i)
{
	uint32_t rest = packet->length - i * packet->size;

	return rest < packet->size ? rest : packet->size;
}

uint32_t gso_packet_parts(const struct gso_packet *packet, struct iovec parts[GSO_SEGMENTS])
{
	uint32_t n = (packet->length + packet->size - 1) / packet->size;

	for (uint32_t i = 0; i < n; i++)
		parts[i] = (struct iovec){segment_at(packet, i), segment_len(packet, i)};
	return n;
}

static void write_headers(const struct gso_packet *packet, uint32_t i)
{
	uint8_t *to = segment_at(packet, i) - packet->headers_len;
	uint8_t *identification = to + ETH_HLEN + IPV4_IDENTIFICATION;

	memcpy(to, packet->headers, packet->headers_len);
	set_lengths(to, segment_len(packet, i));
	/* The kernel counts the identification up in the same way when it cuts a packet. */
	if (is_ipv4(to))
		put16(identification, get16(identification) + i);
}

void gso_packet_finish(struct gso_packet *packet)
{
	packet->count = (packet->length + packet->size - 1) / packet->size;
	for (uint32_t i = 0; i < packet->count; i++)
		write_headers(packet, i);
}

bool gso_packet_next(struct gso_packet *packet, struct packet_port_frame *frame)
{
	uint32_t i = packet->next;

	if (i == packet->count)
		return false;
	packet->next++;
	*frame = (struct packet_port_frame){
		.data = segment_at(packet, i) - packet->headers_len,
		.len = packet->headers_len + segment_len(packet, i),
	};
	return true;
}
