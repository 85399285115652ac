/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the device process of a virtual machine (urxe vm) gets a port of the daemon's switch: by
 * packets on a SOCK_SEQPACKET socket in the run directory. The process sends a request. The daemon
 * answers with two replies: the first carries the descriptors memory and wake of struct
 * netdev_shm_fds, the second carries kick. A reply with another status than 0 carries no
 * descriptor, and the daemon sends nothing after it.
 *
 * The port exists until the connection ends. Integers are in host byte order.
 */
#ifndef URXE_URXED_UPLINK_VM_PORT_PROTOCOL_H
#define URXE_URXED_UPLINK_VM_PORT_PROTOCOL_H

#include <stdint.h>

#define VM_PORT_SOCKET_NAME "urxed.vm"
#define VM_PORT_VERSION     2
#define VM_PORT_NAME        32 /* bytes, with the NUL */
/* Largest Ethernet payload of a frame to and from a machine. */
#define VM_PORT_MTU 9000

struct vm_port_request {
	uint32_t version;
	/*
	 * The daemon names the port "vm:" and this name, of letters, digits, '-', '_' and '.'. If
	 * it is "", the daemon puts the process's PID there.
	 */
	char name[VM_PORT_NAME];
	/*
	 * The machine's MAC. The machine of another user than root and the daemon's may send from
	 * this MAC only.
	 */
	uint8_t mac[6];
	uint8_t reserved[2]; /* 0 */
};

struct vm_port_reply {
	uint32_t version;
	/*
	 * 0, or a negative errno value. -EPROTO: the packet is no request of this version; -EPERM:
	 * the user may not have a port; -ENOSPC: no port is free for the user; -EEXIST: another
	 * port has the name; -EINVAL: the name has other characters. The daemon checks the MAC only
	 * for users other than root and its own user. -EADDRINUSE: another machine, the host or a
	 * station of the network has the MAC; a station that has left has it for some 0.3 s more.
	 * -EINVAL: the MAC is a group's.
	 */
	int32_t status;
	uint32_t mtu; /* longest Ethernet payload that every uplink carries now, bytes */
};

#endif
