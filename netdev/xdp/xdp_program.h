/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe's XDP program (roce.bpf.c) on an interface: removes one that a killed process left, and sets
 * which RoCE packets pass it to the kernel. DPDK's af_xdp driver opens the sockets (dpdk/spec.c,
 * dpdk/pool.c).
 */
#ifndef URXE_NETDEV_XDP_XDP_PROGRAM_H
#define URXE_NETDEV_XDP_XDP_PROGRAM_H

#include <stdint.h>

/*
 * Detaches urxe's own program if no socket uses it. 0: the interface has no program now. -EBUSY: it
 * has one that a socket uses or that is not urxe's, and that stays. `error` gets a sentence, which
 * begins with `text`.
 */
int xdp_program_clear(const char *text, unsigned int ifindex, char *error, uint32_t error_size);

/* One bit for each block of 2^12 QPNs (netdev/packet_port.h). */
#define XDP_BLOCK_WORDS 64

/*
 * Maps the blocks of QPNs whose packets the interface's program passes to the kernel; none at
 * first. NULL: the program is not urxe's, or the kernel refuses (before Linux 5.5).
 */
uint64_t *xdp_program_map_blocks(unsigned int ifindex);
/*
 * Replaces the set of blocks: the program passes RoCE packets to QPNs of these n blocks to the
 * kernel (XDP_PASS), and packets to other QPNs to the AF_XDP socket. Makes no system call.
 */
void xdp_program_set_blocks(uint64_t *words, const uint16_t *blocks, uint32_t n);
/* NULL is ignored. */
void xdp_program_unmap_blocks(uint64_t *words);

#endif
