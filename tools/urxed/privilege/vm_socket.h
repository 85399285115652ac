/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lets the daemon connect to sockets of virtual machines in other users' directories, and remove
 * its own sockets there. A port qemu:PATH,connect tries to connect once a second until QEMU
 * listens; other qemu: ports remove the file of their own socket when they close. Root's daemon
 * needs CAP_DAC_OVERRIDE for that. So that the daemon can drop the capability, a helper process
 * keeps it, and serves only the paths of the daemon's own uplinks. vm_socket_start makes the qemu:
 * ports use the helper.
 *
 * If the file system of a path does not answer, the daemon waits once: 100 ms to connect, or 1 s to
 * remove. After that it never waits for this path: the port gets the connection at its first try
 * after the file system's answer.
 */
#ifndef URXE_URXED_PRIVILEGE_VM_SOCKET_H
#define URXE_URXED_PRIVILEGE_VM_SOCKET_H

#include <stdint.h>

/*
 * Starts the helper if this process has the capability and one of the uplinks is a qemu: port. Call
 * it before the process has threads. Returns 0 or a negative errno value.
 */
int vm_socket_start(const char *const *uplinks, uint32_t n);
void vm_socket_stop(void);

#endif
