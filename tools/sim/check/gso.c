/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames that may leave as segments of one UDP GSO packet (urxe_frame.continues). */
#include "sim/check/check.h"

#include <string.h>

#include "sim/network/address.h"
#include "sim/world.h"

#define ETH_LEN   14
#define IPV4_LEN  20
#define IPV6_LEN  40
#define UDP_LEN   8
#define RUN_BYTES (1u << 16)

static uint32_t read_be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static bool is_ipv4(const uint8_t *frame)
{
	return read_be16(frame + ETH_LEN - 2) == 0x0800;
}

static bool is_ipv6(const uint8_t *frame)
{
	return read_be16(frame + ETH_LEN - 2) == 0x86dd;
}

/* Copies the headers up to the BTH, with zeros for the fields in which the frames of a run may
 * differ. Returns their length. */
static uint32_t copy_fixed_headers(uint8_t to[ETH_LEN + IPV6_LEN + UDP_LEN], const uint8_t *frame)
{
	const uint32_t ip_len = is_ipv4(frame) ? IPV4_LEN : IPV6_LEN;
	uint8_t *ip = to + ETH_LEN, *udp = ip + ip_len;

	memcpy(to, frame, ETH_LEN + ip_len + UDP_LEN);
	if (is_ipv4(frame)) {
		memset(ip + 2, 0, 4);  /* length, identification */
		memset(ip + 10, 0, 2); /* checksum */
	} else {
		memset(ip + 4, 0, 2); /* payload length */
	}
	memset(udp + 4, 0, 4); /* length, checksum */
	return ETH_LEN + ip_len + UDP_LEN;
}

/* Whether the frame may follow in one UDP GSO packet: same headers, the next IPv4 identification,
 * and the same destination QP. */
static bool follows(const uint8_t *frame, const uint8_t *before)
{
	uint8_t one[ETH_LEN + IPV6_LEN + UDP_LEN], other[sizeof(one)];
	const uint32_t n = copy_fixed_headers(one, frame);
	const uint8_t *bth = frame + n, *bth_before = before + n;

	if ((!is_ipv4(frame) && !is_ipv6(frame)) || copy_fixed_headers(other, before) != n ||
	    memcmp(one, other, n))
		return false;
	if (is_ipv4(frame) &&
	    read_be16(frame + ETH_LEN + 4) != ((read_be16(before + ETH_LEN + 4) + 1) & 0xffff))
		return false;
	return !memcmp(bth + 5, bth_before + 5, 3);
}

static bool is_run(const struct simhost *host, const struct urxe_frame *frames, uint32_t n)
{
	uint32_t bytes = frames[0].len;

	for (uint32_t i = 1; i < n; i++) {
		bytes += frames[i].len;
		if (!follows(frames[i].data, frames[i - 1].data) || frames[i].len > frames[0].len ||
		    frames[i - 1].len != frames[0].len)
			return false;
	}
	return n == 1 || (host->gso && bytes < RUN_BYTES &&
			  host->world->host[address_host(frames[0].data)].gso);
}

void check_gso(struct simhost *host, const struct urxe_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		uint32_t end = i + 1;

		while (end < n && frames[end].continues)
			end++;
		if (!is_run(host, &frames[i], end - i))
			world_fail(host->world, "host %u: frames do not fit one UDP GSO packet",
				   host->id);
		i = end;
	}
	if (n && frames[0].continues)
		world_fail(host->world, "host %u: the first frame continues another one", host->id);
}
