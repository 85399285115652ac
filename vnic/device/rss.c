/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The Toeplitz hash: for each bit of the input that is set, XOR of the 32 bits of the key that
 * begin at the same position. The result for each half byte is computed in advance.
 */
#include "rss.h"

#include <netinet/in.h>
#include <string.h>

#include "headers.h"

#define PORTS      4 /* bytes of both ports, or of ESP's SPI */
#define IP4_FIRST  12
#define IP4_LENGTH 8 /* of both addresses */
#define IP6_FIRST  8
#define IP6_LENGTH 32

/* The 32 bits of the key that begin at `bit`. */
static uint32_t key_window(const uint8_t *key, uint32_t bit)
{
	uint64_t window = 0;

	for (uint32_t i = 0; i < 5; i++)
		window = window << 8 | key[bit / 8 + i];
	return (uint32_t)(window >> (8 - bit % 8));
}

static void compute_partials(struct vnic_rss *rss, const uint8_t key[UPT1_RSS_KEY_SIZE])
{
	for (uint32_t i = 0; i < 2 * VNIC_RSS_INPUT; i++)
		for (uint32_t value = 0; value < 16; value++) {
			rss->partial[i][value] = 0;
			for (uint32_t bit = 0; bit < 4; bit++)
				if (value & 8u >> bit)
					rss->partial[i][value] ^= key_window(key, 4 * i + bit);
		}
}

static bool conf_valid(const struct upt1_rss_conf *conf, uint32_t queues)
{
	if (conf->function != UPT1_RSS_HASH_FUNC_TOEPLITZ || conf->key_size > UPT1_RSS_KEY_SIZE ||
	    !conf->table_size || conf->table_size > UPT1_RSS_TABLE_SIZE)
		return false;
	for (uint32_t i = 0; i < conf->table_size; i++)
		if (conf->table[i] >= queues)
			return false;
	return true;
}

bool vnic_rss_set(struct vnic_rss *rss, const struct upt1_rss_conf *conf, uint32_t queues)
{
	uint8_t key[UPT1_RSS_KEY_SIZE] = {0};

	if (!conf_valid(conf, queues))
		return false;
	rss->types = conf->types;
	rss->table_size = conf->table_size;
	memcpy(rss->table, conf->table, conf->table_size);
	memcpy(key, conf->key, conf->key_size);
	compute_partials(rss, key);
	return true;
}

/* The hash of a part of the input, which begins at byte `at` of the input. */
static uint32_t hash_bytes(const struct vnic_rss *rss, uint32_t at, const uint8_t *data,
			   uint32_t len)
{
	uint32_t hash = 0;

	for (uint32_t i = 0; i < len; i++) {
		hash ^= rss->partial[2 * (at + i)][data[i] >> 4];
		hash ^= rss->partial[2 * (at + i) + 1][data[i] & 15];
	}
	return hash;
}

/* A protocol's bits in the driver's configuration, for IPv4 and IPv6. */
struct transport {
	uint8_t protocol;
	uint16_t types; /* 0: the fields alone decide */
	uint32_t fields;
	enum vmxnet3_rss_type type;
};

/* The type of a packet of which more than the addresses is hashed; NONE: only the addresses. */
static enum vmxnet3_rss_type transport_type(const struct vnic_rss *rss, uint32_t fields,
					    const struct vnic_headers *h)
{
	static const struct transport transports[2][3] = {
		{{IPPROTO_TCP, UPT1_RSS_HASH_TYPE_TCP_IPV4, VMXNET3_RSS_FIELDS_TCPIP4,
		  VMXNET3_RCD_RSS_TYPE_TCPIPV4},
		 {IPPROTO_UDP, 0, VMXNET3_RSS_FIELDS_UDPIP4, VMXNET3_RCD_RSS_TYPE_UDPIPV4},
		 {IPPROTO_ESP, 0, VMXNET3_RSS_FIELDS_ESPIP4, VMXNET3_RCD_RSS_TYPE_ESPIPV4}},
		{{IPPROTO_TCP, UPT1_RSS_HASH_TYPE_TCP_IPV6, VMXNET3_RSS_FIELDS_TCPIP6,
		  VMXNET3_RCD_RSS_TYPE_TCPIPV6},
		 {IPPROTO_UDP, 0, VMXNET3_RSS_FIELDS_UDPIP6, VMXNET3_RCD_RSS_TYPE_UDPIPV6},
		 {IPPROTO_ESP, 0, VMXNET3_RSS_FIELDS_ESPIP6, VMXNET3_RCD_RSS_TYPE_ESPIPV6}},
	};

	for (uint32_t i = 0; i < 3; i++) {
		const struct transport *t = &transports[h->v6][i];

		if (t->protocol == h->protocol && (t->fields & fields) &&
		    (!t->types || t->types & rss->types))
			return t->type;
	}
	return VMXNET3_RCD_RSS_TYPE_NONE;
}

struct vnic_rss_hash vnic_rss_hash(const struct vnic_rss *rss, uint32_t fields,
				   const uint8_t *frame, uint32_t len)
{
	struct vnic_rss_hash result = {0, VMXNET3_RCD_RSS_TYPE_NONE};
	struct vnic_headers h;
	uint32_t first, length;

	if (!vnic_headers_find(&h, frame, len))
		return result;
	first = h.l3 + (h.v6 ? IP6_FIRST : IP4_FIRST);
	length = h.v6 ? IP6_LENGTH : IP4_LENGTH;
	/* Only the first fragment of a packet has ports, so fragments are hashed by their
	 * addresses: all go to one queue. */
	if (!h.fragment && len - h.l4 >= PORTS)
		result.type = transport_type(rss, fields, &h);
	if (result.type != VMXNET3_RCD_RSS_TYPE_NONE)
		result.hash = hash_bytes(rss, length, frame + h.l4, PORTS);
	else if (rss->types & (h.v6 ? UPT1_RSS_HASH_TYPE_IPV6 : UPT1_RSS_HASH_TYPE_IPV4))
		result.type = h.v6 ? VMXNET3_RCD_RSS_TYPE_IPV6 : VMXNET3_RCD_RSS_TYPE_IPV4;
	else
		return result;
	result.hash ^= hash_bytes(rss, 0, frame + first, length);
	return result;
}
