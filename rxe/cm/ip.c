/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <cm/ip.h>

#include <errno.h>
#include <string.h>

/* Offsets of fields (A11.7): version, IP version in the high nibble, port, source, destination. */
#define IP_VERSION  1
#define PORT        2
#define SOURCE      4
#define DESTINATION 20

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Reads an address of the header, in which an IPv4 address is the last word, after zeros. */
static void get_address(uint8_t ip[16], const uint8_t *p, bool v6)
{
	memcpy(ip, p, 16);
	if (!v6)
		memcpy(ip, mapped, sizeof(mapped));
}

static void put_address(uint8_t *p, const uint8_t ip[16], bool v6)
{
	memcpy(p, ip, 16);
	if (!v6)
		memset(p, 0, sizeof(mapped));
}

int cm_ip_parse(struct cm_ip_hdr *hdr, const uint8_t bytes[CM_IP_HDR_LEN])
{
	uint8_t version = bytes[IP_VERSION] >> 4;

	if (bytes[0] || (version != 4 && version != 6))
		return -EINVAL;
	hdr->v6 = version == 6;
	hdr->src_port = (uint16_t)(bytes[PORT] << 8 | bytes[PORT + 1]);
	get_address(hdr->src, bytes + SOURCE, hdr->v6);
	get_address(hdr->dst, bytes + DESTINATION, hdr->v6);
	return 0;
}

void cm_ip_build(const struct cm_ip_hdr *hdr, uint8_t bytes[CM_IP_HDR_LEN])
{
	memset(bytes, 0, CM_IP_HDR_LEN);
	bytes[IP_VERSION] = hdr->v6 ? 6 << 4 : 4 << 4;
	bytes[PORT] = (uint8_t)(hdr->src_port >> 8);
	bytes[PORT + 1] = (uint8_t)hdr->src_port;
	put_address(bytes + SOURCE, hdr->src, hdr->v6);
	put_address(bytes + DESTINATION, hdr->dst, hdr->v6);
}
