/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DPDK's environment, of which a process has one. */
#ifndef URXE_NETDEV_DPDK_EAL_H
#define URXE_NETDEV_DPDK_EAL_H

#include <stdint.h>

#include "dpdk/spec.h"

/* Starts it if it has not been, as the port needs it; NULL: for tables, without a port. */
int dpdk_eal_start(const struct dpdk_spec *spec, char *why, uint32_t why_size);

/* Between these two, DPDK's complaints are kept back; the first of them is at hand. */
void dpdk_log_hold(void);
const char *dpdk_log_reason(void);
void dpdk_log_release(void);

#endif
