/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of virtual machines in other users' directories: ports qemu:PATH connect to them once a
 * second until the machine listens, and remove their own socket at the end. Root's daemon needs
 * CAP_DAC_OVERRIDE for that. A helper process keeps the capability, and serves the paths of
 * the daemon's own uplinks only. vm_socket_start makes the qemu: ports use the helper.
 *
 * A path on a file system that does not answer delays the daemon once by 100 ms. From then on a
 * connection to that path comes with the port's next try after the file system has answered.
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
