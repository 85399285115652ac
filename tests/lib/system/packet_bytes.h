/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fields of packets in network byte order, and the checksum of IP, TCP and UDP. */
#ifndef URXE_TEST_PACKET_BYTES_H
#define URXE_TEST_PACKET_BYTES_H

#include <stdint.h>

static inline void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

/*
 * Adds bytes to a sum of RFC 1071, byte by byte. The code of urxe adds whole words, so the tests
 * check it by another method.
 */
static inline uint32_t internet_sum(const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

#endif
