/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The direct uplink: packet sockets by which trusted processes send and receive their own RoCE
 * frames on the uplink's interface, without the switch (netdev/packet_port.h). docs/uplinks.md says
 * when a process has one. session/session_uplink.c calls this, and gives the sockets to processes.
 */
#ifndef URXE_URXED_UPLINK_DIRECT_UPLINK_H
#define URXE_URXED_UPLINK_DIRECT_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/packet_port.h>

#include "urxed/bond/bond.h"
#include "urxed/hostnet/address_pin.h"
#include "urxed/hostnet/host.h"
#include "urxed/uplink/direct_uplink_trust.h"
#include "urxed/uplink/uplink_set.h"

/*
 * Limit of the processes that have packet sockets at a time, because the kernel runs the filter of
 * each socket for each received frame. For this number of sockets that takes about as long as the
 * rest of the kernel's work for the frame.
 */
#define DIRECT_UPLINK_SOCKETS 64

struct hca_monitor;

struct direct_uplink {
	struct direct_uplink_trust trust;
	const struct host *host;
	struct uplink_set *uplinks;
	const struct address_pins *pins;
	const struct hca_monitor *hca; /* NULL = the daemon uses no HCA */
	const struct bond *bond;       /* the bond whose members the uplinks are; NULL = no bond */
	/*
	 * Incremented when processes have to close their sockets, or get none because
	 * direct_uplink_generation is 0. So the next generation differs from the one that these
	 * processes know, and they ask for sockets again.
	 */
	uint32_t revocations;
};

/*
 * In all functions except direct_uplink_find_copied, a NULL `direct` stands for a daemon without
 * uplinks.
 *
 * Returns the generation of the direct uplink. It changes when the daemon opens the uplink again,
 * when another member of a bond becomes the active one, and when processes may have packet sockets
 * again after they had to close theirs or got none. 0: no process may have a packet socket now,
 * because
 * - the uplink is neither af_packet: nor af_xdp: with urxe's XDP program,
 * - the daemon has several uplinks, where the port of a virtual machine counts as one. The members
 *   of a bond count as a single uplink: in mode active-backup the active member; in mode balance
 *   all members, which then must all be af_packet: or all af_xdp:,
 * - the uplink is impaired or closed, or receives frames for machines, too (uplink_hear_all),
 * - the uplink is in no bond, and has another MAC than the host: the interface's MAC has changed
 *   since the start, and only the switch gives frames the new MAC,
 * - an HCA backs the device, so that frames to other hosts go to the HCA anyway, or
 * - an address is pinned to a station: only the switch checks pins.
 */
uint32_t direct_uplink_generation(const struct direct_uplink *direct);
/* Returns a bit for each uplink on which processes may have packet sockets; 0 if
 * direct_uplink_generation is 0. */
uint32_t direct_uplink_find(const struct direct_uplink *direct);
/*
 * Copies the generation, and the bits of the sockets by which processes may send now
 * (uplink_carriers), to *host, which passes them to processes. Returns whether one of the two has
 * changed.
 */
bool direct_uplink_fill(const struct direct_uplink *direct, struct host *host);
/*
 * Creates a packet socket (packet_port_create) on each uplink of direct_uplink_find, and sets *ring
 * to the sizes of the receive ring that the process makes for each socket. Returns the number of
 * sockets, which the caller then owns; -ENODEV if direct_uplink_generation is 0; or another
 * negative errno value, after which no socket is open.
 */
int direct_uplink_create(const struct direct_uplink *direct, struct packet_port_ring *ring,
			 int fds[PACKET_GROUP_MAX]);
/*
 * Sets the blocks of QPNs to which the switch receives no packets from the uplink; they replace
 * those of an earlier call. Returns 0; -ENODEV: direct_uplink_generation is 0, and nothing has
 * changed; or another negative errno value, after which the switch receives all packets.
 */
int direct_uplink_exclude(const struct direct_uplink *direct, const uint16_t *blocks, uint32_t n);

/*
 * Returns the index of the uplink on the interface of the HCA that backs the device; -1: there is
 * none.
 */
int direct_uplink_hca_index(const struct direct_uplink *direct);
/* Returns the uplink of direct_uplink_hca_index if it can leave packets to the HCA
 * (netdev_admit_qpns); NULL: there is none, or it cannot do that. */
struct uplink *direct_uplink_of_hca(const struct direct_uplink *direct);

/*
 * Returns true if each packet reaches either the switch or a process's socket, never both, because
 * the XDP program of an af_xdp: uplink chooses. Returns false for af_packet:, where the kernel
 * gives a copy to each socket; and if direct_uplink_generation is 0.
 */
bool direct_uplink_redirects(const struct direct_uplink *direct);
/* Returns the open uplinks of the bit mask `mask` that are not af_xdp:. On these, packet sockets
 * that are still open receive packets that the switch also receives, even while processes may have
 * none. */
uint32_t direct_uplink_find_copied(const struct direct_uplink *direct, uint32_t mask);

#endif
