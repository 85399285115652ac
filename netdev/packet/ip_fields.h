/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offsets in the headers of IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC 768), their fields, and
 * sums for checksums. */
#ifndef URXE_NETDEV_PACKET_IP_FIELDS_H
#define URXE_NETDEV_PACKET_IP_FIELDS_H

#include <stdint.h>

#define IPV4_LEN 20
#define IPV6_LEN 40
#define UDP_LEN  8

#define IPV4_LENGTH         2
#define IPV4_IDENTIFICATION 4
#define IPV4_PROTOCOL       9
#define IPV4_CHECKSUM       10
#define IPV4_ADDRESSES      12
#define IPV6_LENGTH         4
#define IPV6_NEXT           6
#define IPV6_ADDRESSES      8
#define UDP_LENGTH          4
#define UDP_CHECKSUM        6

/* Read and write a field in network byte order, at any alignment. */
static inline uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Adds the 16-bit words of up to 64 KiB, of which the last may be half (RFC 1071). */
static inline uint64_t add_words(uint64_t sum, const uint8_t *at, uint32_t len)
{
	for (; len > 1; at += 2, len -= 2)
		sum += get16(at);
	return len ? sum + ((uint64_t)at[0] << 8) : sum;
}

static inline uint32_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

#endif
