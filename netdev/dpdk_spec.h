/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a port specification such as tap:urxe0 asks of DPDK. */
#ifndef URXE_NETDEV_DPDK_SPEC_H
#define URXE_NETDEV_DPDK_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum dpdk_kind { DPDK_AF_XDP, DPDK_TAP, DPDK_PCAP, DPDK_VHOST, DPDK_OTHER };

struct dpdk_spec {
	enum dpdk_kind kind;
	bool pci;
	char iface[IF_NAMESIZE]; /* of the host, where the kind has one */
	unsigned int ifindex;    /* of an interface that exists already */
	uint32_t iface_mtu;      /* and its MTU */
	char devargs[512];       /* for rte_dev_probe */
};

int dpdk_spec_parse(const char *text, struct dpdk_spec *spec, char *why, uint32_t why_size);

#endif
