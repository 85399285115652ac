/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The RDMA IP CM service (IBA volume 1, Annex A11): ports as service IDs, and
 * addresses at the head of a request's private data.
 */
#ifndef URXE_CM_IP_H
#define URXE_CM_IP_H

#include <stdbool.h>
#include <stdint.h>

#define CM_IP_HDR_LEN 36

/* Port spaces, of which the low byte is the IP protocol (enum rdma_ucm_port_space). */
#define CM_PS_TCP 0x0106
#define CM_PS_UDP 0x0111
#define CM_PS_IB  0x013f

/* The service ID of a port space and a port; the port is in host byte order. */
static inline uint64_t cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/* Addresses are 16 bytes in network byte order, IPv4 as ::ffff:a.b.c.d. */
struct cm_ip_hdr {
	uint8_t src[16];
	uint8_t dst[16];
	uint16_t src_port; /* host byte order */
	bool v6;
};

/* Reads the header. -EINVAL: unknown version of the header, or neither IPv4 nor IPv6. */
int cm_ip_parse(struct cm_ip_hdr *hdr, const uint8_t bytes[CM_IP_HDR_LEN]);
void cm_ip_build(const struct cm_ip_hdr *hdr, uint8_t bytes[CM_IP_HDR_LEN]);

#endif
