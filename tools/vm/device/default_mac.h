/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The MAC of a virtual machine for which the user names none. */
#ifndef URXE_VM_DEVICE_DEFAULT_MAC_H
#define URXE_VM_DEVICE_DEFAULT_MAC_H

#include <stdint.h>

/*
 * A locally administered MAC that depends on this host and on the absolute path of the device's
 * socket. So a virtual machine has the same MAC after each restart, and most likely no other
 * virtual machine has it.
 */
void default_mac(const char *path, uint8_t mac[6]);

#endif
