/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Binds UDP port 4791, that of RoCEv2, on a kernel interface, so that the kernel does not answer
 * RoCE packets.
 *
 * The kernel also receives the frames of its interfaces, and would answer RoCEv2 with ICMP port
 * unreachable. A socket bound to the port on the interface, with a filter that drops everything,
 * prevents this for all addresses of the interface. RoCEv1 has an EtherType that the kernel does
 * not know, so the kernel never answers it.
 *
 * The socket also asks for GRO, by which the kernel joins packets for programs' packet sockets, if
 * the kernel can pass such packets to them (packet_port_kernel_has_gso).
 */
#ifndef URXE_URXED_KERNEL_ROCE_PORT_GUARD_H
#define URXE_URXED_KERNEL_ROCE_PORT_GUARD_H

#define ROCE_PORT_GUARD_ERROR 256

struct roce_port_guard {
	int fds[2]; /* IPv4, IPv6; -1 = none */
};

/* Makes a guard that guards nothing and may be closed. */
void roce_port_guard_init(struct roce_port_guard *h);
/*
 * Binds UDP port 4791 of an interface until roce_port_guard_close. Returns 0 or a negative errno
 * value; -EADDRINUSE: rdma_rxe, another program or another uplink of this daemon has the port. On
 * error `error` has a sentence, and nothing is bound.
 */
int roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
			 char error[ROCE_PORT_GUARD_ERROR]);
void roce_port_guard_close(struct roce_port_guard *h);

#endif
