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

#define HOLD_WHY 256

struct hold {
	int fds[2]; /* IPv4, IPv6; -1 = none */
};

/* Holds nothing, and can be closed. */
void hold_init(struct hold *h);
/* Holds UDP port 4791 of an interface. On error `why` gets one sentence, and nothing is held. */
int hold_open(struct hold *h, const char *ifname, char why[HOLD_WHY]);
void hold_close(struct hold *h);

#endif
