/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Claims a kernel interface for one uplink of one urxed. The claim is an abstract UNIX socket
 * (unix(7)), whose name the kernel keeps unique in the network namespace. UDP port 4791
 * (roce_port_guard.h) does not suffice as a claim: while rdma_rxe has the port, or an HCA is on the
 * interface, urxed goes on without it.
 */
#ifndef URXE_URXED_KERNEL_IFACE_CLAIM_H
#define URXE_URXED_KERNEL_IFACE_CLAIM_H

#define IFACE_CLAIM_ERROR 256

/*
 * Returns a descriptor that holds the claim until the caller closes it, or a negative errno value
 * and a sentence in `error`. -EADDRINUSE: another uplink, of this or another urxed, has claimed the
 * interface; -ENODEV: there is no such interface.
 */
int iface_claim_open(const char *ifname, char error[IFACE_CLAIM_ERROR]);

#endif
