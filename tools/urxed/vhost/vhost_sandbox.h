/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Takes away rights that the process of a vhost: uplink does not need, in case that a hostile
 * virtual machine takes the process over. vhost_main.c calls the functions in this order.
 */
#ifndef URXE_URXED_VHOST_VHOST_SANDBOX_H
#define URXE_URXED_VHOST_VHOST_SANDBOX_H

#include <stdint.h>

#include <netdev/vhost.h>

/*
 * Before threads exist: takes away capabilities and core dumps, and makes the process the first
 * that the kernel kills if memory is short. A right that cannot be taken away stays.
 */
void vhost_sandbox_prepare(void);

/*
 * After DPDK's start and before the socket exists: makes the socket's directory the root directory,
 * if the user may, and changes spec->path; then limits all threads to the system calls that the
 * port needs. Returns 0 or a negative errno value; `error` gets one sentence.
 */
int vhost_sandbox_enter(struct netdev_vhost_spec *spec, char *error, uint32_t error_size);

/* After the port's start: takes away the system calls that only the start needs. */
int vhost_sandbox_close(const struct netdev_vhost_spec *spec, char *error, uint32_t error_size);

#endif
