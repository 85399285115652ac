/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the device process of a virtual machine (urxe vm) gets a port of the daemon's switch: by
 * packets on a SOCK_SEQPACKET socket in the run directory. The process sends a request. The daemon
 * answers with two replies: the first carries the descriptors memory and wake of struct
 * netdev_shm_fds, the second carries kick. If the status is not 0, the daemon sends only one reply,
 * without a descriptor.
 *
 * The port exists until the connection ends. Integers are in host byte order.
 */
#ifndef URXE_URXED_UPLINK_VM_PORT_PROTOCOL_H
#define URXE_URXED_UPLINK_VM_PORT_PROTOCOL_H

#include <stdint.h>

#define VM_PORT_SOCKET_NAME "urxed.vm"
#define VM_PORT_VERSION     2
#define VM_PORT_NAME        32 /* bytes, with the NUL */
/* Largest Ethernet payload of a frame from or to a machine, bytes. */
#define VM_PORT_MTU 9000

struct vm_port_request {
	uint32_t version;
	/* The daemon names the port "vm:" and this name, which may have letters, digits, '-', '_'
	 * and '.'. If it is "", the daemon takes the process's PID instead. */
	char name[VM_PORT_NAME];
	/* The machine's MAC. A machine may send from this MAC only, unless its user is root or the
	 * daemon's user. */
	uint8_t mac[6];
	uint8_t reserved[2]; /* 0 */
};

struct vm_port_reply {
	uint32_t version;
	/*
	 * 0, or a negative errno value. -EPROTO: the packet is no request of this version; -EPERM:
	 * the user may not have a port; -ENOSPC: no port is free for the user; -EEXIST: another
	 * port has the name; -EINVAL: the name has other characters. If the user is neither root
	 * nor the daemon's, the daemon also checks the MAC. -EADDRINUSE: another machine, the host
	 * or a station of the network has the MAC; after a station has left, this lasts some 0.3 s.
	 * Or another user's machine had the MAC before the daemon's restart (mac_store.h). -EINVAL:
	 * no station can have the MAC.
	 */
	int32_t status;
	uint32_t mtu; /* present MTU of all uplinks, bytes of Ethernet payload */
};

#endif
