/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Claims a kernel interface for one uplink of one urxed, by the name of a UNIX socket in the
 * network namespace (abstract, unix(7)). UDP port 4791 (roce_port_guard.h) does not suffice: while
 * rdma_rxe has it, or an HCA is on the interface, urxed goes on without it.
 */
#ifndef URXE_URXED_KERNEL_IFACE_CLAIM_H
#define URXE_URXED_KERNEL_IFACE_CLAIM_H

#define IFACE_CLAIM_ERROR 256

/*
 * Returns a descriptor that holds the claim until it is closed, or a negative errno value and a
 * sentence in `error`. -EADDRINUSE: another uplink, of this urxed or another one, has the
 * interface; -ENODEV: there is no such interface.
 */
int iface_claim_open(const char *ifname, char error[IFACE_CLAIM_ERROR]);

#endif
