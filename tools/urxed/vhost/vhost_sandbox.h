/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Takes away rights that the process of a vhost: uplink does not need, because a hostile virtual
 * machine might take the process over. vhost_main.c calls the functions in this order. */
#ifndef URXE_URXED_VHOST_VHOST_SANDBOX_H
#define URXE_URXED_VHOST_VHOST_SANDBOX_H

#include <stdint.h>

#include <netdev/vhost.h>

/*
 * Call it before the process has threads. Takes away most capabilities and core dumps, limits the
 * number of descriptors, and makes the kernel kill this process early if memory is short. Ignores
 * failures: a right that it cannot take away stays.
 */
void vhost_sandbox_prepare(void);

/*
 * Call it after DPDK's start and before the socket exists. Makes the socket's directory the root
 * directory, if the user may, and changes spec->path. Then limits all threads to the system calls
 * that the port needs. Returns 0 or a negative errno value; `error` gets one sentence.
 */
int vhost_sandbox_enter(struct netdev_vhost_spec *spec, char *error, uint32_t error_size);

/* Call it after the port's start: takes away the system calls that only the start needs. Returns as
 * vhost_sandbox_enter. */
int vhost_sandbox_close(const struct netdev_vhost_spec *spec, char *error, uint32_t error_size);

#endif
