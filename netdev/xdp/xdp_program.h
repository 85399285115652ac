/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe's XDP program (roce.bpf.c) on an interface: removes one that a killed process left, and sets
 * which RoCE packets pass it to the kernel. DPDK's af_xdp driver opens the sockets (dpdk/spec.c,
 * dpdk/pool.c).
 */
#ifndef URXE_NETDEV_XDP_XDP_PROGRAM_H
#define URXE_NETDEV_XDP_XDP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Detaches urxe's own program if no socket uses it. 0: the interface has no program now. -EBUSY: it
 * has one that a socket uses or that is not urxe's, and that stays; or another negative errno
 * value. `error` gets a sentence, which begins with `text`.
 */
int xdp_program_clear(const char *text, unsigned int ifindex, char *error, uint32_t error_size);

/*
 * Moves urxe's program, which DPDK's driver has loaded from `file` and attached to a veth
 * interface, from the hook of veth's driver to the kernel's own hook (generic XDP). With a program
 * at the driver's hook, the other end of the cable cannot send GSO packets, and each received frame
 * is copied once more. Sets *program to a descriptor for xdp_program_detach; -1: the interface is
 * no veth, the program is not urxe's, or the kernel refuses to load it (before Linux 5.18, for
 * example), and the program stays where it is. 0, or a negative errno value: the interface has no
 * program any more, or (-EBUSY) that of another process, which stays. `error` as of
 * xdp_program_clear.
 */
int xdp_program_leave_veth(const char *text, unsigned int ifindex, const char *file, int *program,
			   char *error, uint32_t error_size);
/* Detaches the program from the kernel's hook, which DPDK's driver does not do. -1 is ignored. */
void xdp_program_detach(unsigned int ifindex, int program);

#define XDP_BLOCK_WORDS 64
#define XDP_OWN_MACS    5

/* The QPs whose packets the program passes to the kernel, as in roce.bpf.c. */
struct xdp_passed {
	uint64_t blocks[XDP_BLOCK_WORDS]; /* a bit for each block of 2^12 QPNs
					     (netdev/packet_port.h) */
	uint64_t qp1;                     /* not 0: also QP1 */
	/* The host's unicast MACs as numbers, the first byte most significant; 0 = none. If
	 * own_macs[0] is not 0, RoCE to all other unicast MACs passes, too. */
	uint64_t own_macs[XDP_OWN_MACS];
};

/*
 * Maps the set of the interface's program; the set is empty at first. NULL: the program is not
 * urxe's, or the kernel refuses.
 */
struct xdp_passed *xdp_program_map_passed(unsigned int ifindex);
/*
 * The program passes RoCE packets to QPNs of these n blocks to the kernel (XDP_PASS), and packets
 * to other QPNs to the AF_XDP socket. Makes no system call.
 */
void xdp_program_pass_blocks(struct xdp_passed *passed, const uint16_t *blocks, uint32_t n);
/* Sets whether the program passes RoCE packets to QP1 to the kernel, too, if their block of QPNs is
 * not passed. */
void xdp_program_pass_qp1(struct xdp_passed *passed, bool pass);
/*
 * From now on the program passes unicast RoCE packets to other MACs than the n in `own` to the
 * kernel; n = 0: no longer. n: 0 to XDP_OWN_MACS. Makes no system call.
 */
void xdp_program_pass_other_macs(struct xdp_passed *passed, const uint8_t (*own)[6], uint32_t n);
/* Unmaps the set. NULL is ignored. */
void xdp_program_unmap_passed(struct xdp_passed *passed);

#endif
