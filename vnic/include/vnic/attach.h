/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a process attaches to urxed: messages on a SOCK_SEQPACKET UNIX socket.
 *
 * Client and daemon run on one machine under one build, so integers are in host
 * byte order. One message is one packet; descriptors travel as SCM_RIGHTS. The
 * client sends a request and waits for the reply of the same type; requests
 * never overlap on a socket. The daemon closes the socket on any message that is
 * malformed.
 *
 *   HELLO    client: version, memory size; memfd of the driver's memory (sealed
 *            against shrinking).
 *            daemon: identity, lease and addresses; memfd of the register
 *            page, eventfd that wakes the device, eventfd of the interrupt.
 *   REG      access to a register that acts or answers (CMD, VRRS, ...).
 *   RESOLVE  the MAC for a destination address, ARP or ND as needed.
 */
#ifndef URXE_VNIC_ATTACH_H
#define URXE_VNIC_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#define VNIC_ATTACH_VERSION 1
#define VNIC_ATTACH_GIDS    16
#define VNIC_SOCKET_NAME    "urxed.sock" /* in the daemon's run directory */
#define VNIC_SYSFS_NAME     "sys"        /* likewise: the tree that plays /sys */

enum vnic_attach_type { VNIC_ATTACH_HELLO = 1, VNIC_ATTACH_REG, VNIC_ATTACH_RESOLVE };

struct vnic_attach_gid {
	uint8_t raw[16];
	uint8_t valid;
	uint8_t v1; /* sends RoCEv1 */
	uint8_t reserved[6];
};

struct vnic_attach_hello {
	uint32_t type;
	uint32_t version;
	uint64_t memory_size; /* bytes of the driver's memfd */
};

struct vnic_attach_welcome {
	uint32_t type;
	int32_t status; /* 0, or a negative errno value; then the rest is 0 and there are no fds */
	uint8_t mac[6];
	uint16_t mtu; /* bytes of Ethernet payload */
	uint32_t qpn_first;
	uint32_t qpn_count;
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
};

struct vnic_attach_reg {
	uint32_t type;
	uint32_t bar;    /* 0 or 1 */
	uint32_t offset; /* bytes */
	uint32_t write;  /* 1 = write value, 0 = read */
	uint32_t value;
	int32_t status;
};

struct vnic_attach_resolve {
	uint32_t type;
	int32_t status; /* 0, -ENETUNREACH, -EHOSTUNREACH, -EINVAL */
	uint8_t sgid_index;
	uint8_t reserved;
	uint8_t mac[6];
	uint8_t dgid[16];
};

#endif
