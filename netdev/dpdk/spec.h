/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses a port specification such as af_packet:eth0 into arguments for DPDK. */
#ifndef URXE_NETDEV_DPDK_SPEC_H
#define URXE_NETDEV_DPDK_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netdev/vhost.h>

enum dpdk_kind { DPDK_AF_PACKET, DPDK_AF_XDP, DPDK_TAP, DPDK_PCAP, DPDK_VHOST, DPDK_OTHER };

struct dpdk_spec {
	enum dpdk_kind kind;
	bool pci;
	bool busy_polling;       /* the user asks the driver for busy polling; af_xdp */
	char iface[IF_NAMESIZE]; /* the host's interface; af_packet, af_xdp and tap */
	unsigned int ifindex;    /* of that interface; af_packet and af_xdp */
	uint32_t iface_mtu;      /* of that interface, bytes; af_packet and af_xdp */
	uint32_t buffer;         /* least bytes of a packet buffer; 0 = the MTU decides */
	uint32_t ring;           /* slots of each of the packet socket's rings; 0 = no such rings */
	char devargs[512];       /* for rte_dev_probe */
	char socket[108];        /* path of the socket; vhost */
	char xdp_program[256];   /* path of the XDP program's file; af_xdp */
	void *memory;            /* for the packet buffers; NULL = the port's own */
	size_t memory_size;
};

/* Parses a specification. 0, or a negative errno value and a sentence in `error`. */
int dpdk_spec_parse(const char *text, struct dpdk_spec *spec, char *error, uint32_t error_size);
/* Makes the specification of a vhost-user port whose socket netdev_vhost_parse has checked. 0, or a
 * negative errno value and a sentence in `error`. */
int dpdk_spec_vhost(const struct netdev_vhost_spec *vhost, struct dpdk_spec *spec, char *error,
		    uint32_t error_size);

#endif
