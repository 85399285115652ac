/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a port specification such as af_packet:eth0 asks of DPDK. */
#ifndef URXE_NETDEV_DPDK_SPEC_H
#define URXE_NETDEV_DPDK_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum dpdk_kind { DPDK_AF_PACKET, DPDK_AF_XDP, DPDK_TAP, DPDK_PCAP, DPDK_VHOST, DPDK_OTHER };

struct dpdk_spec {
	enum dpdk_kind kind;
	bool pci;
	char iface[IF_NAMESIZE]; /* of the host, where the kind has one */
	unsigned int ifindex;    /* of an interface that exists already */
	uint32_t iface_mtu;      /* and its MTU */
	uint32_t buffer;   /* bytes that the driver wants of a packet buffer; 0 = MTU decides */
	uint32_t ring;     /* frames of the driver's rings that are the kernel's, 0 = it has none */
	char devargs[512]; /* for rte_dev_probe */
};

int dpdk_spec_parse(const char *text, struct dpdk_spec *spec, char *why, uint32_t why_size);

#endif
