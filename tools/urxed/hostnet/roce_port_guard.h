/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeping the kernel silent about RoCE.
 *
 * The kernel sees the frames of its interfaces too, and would answer RoCEv2 with ICMP
 * port unreachable. A socket that holds the port on an interface and drops everything
 * stops that, for all addresses that the interface has or gets. RoCEv1 has an EtherType
 * that the kernel does not know, and answers nothing.
 */
#ifndef URXE_URXED_HOSTNET_ROCE_PORT_GUARD_H
#define URXE_URXED_HOSTNET_ROCE_PORT_GUARD_H

#include <stdint.h>

#define ROCE_PORT_GUARD_ERROR 256

struct roce_port_guard {
	int fds[2]; /* IPv4, IPv6; -1 = none */
};

/* Holds nothing, and can be closed. */
void roce_port_guard_init(struct roce_port_guard *h);
/* Holds UDP port 4791 of an interface. On error `error` gets one sentence, and nothing is held. */
int roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
			 char error[ROCE_PORT_GUARD_ERROR]);
void roce_port_guard_close(struct roce_port_guard *h);

#endif
