/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starts DPDK's environment abstraction layer (EAL), of which a process has one, and its log. */
#ifndef URXE_NETDEV_DPDK_EAL_H
#define URXE_NETDEV_DPDK_EAL_H

#include <stdint.h>

#include "dpdk/spec.h"

/* Starts the EAL once, as the port needs it; spec NULL: without a port, for telemetry alone. */
int dpdk_eal_start(const struct dpdk_spec *spec, char *error, uint32_t error_size);

/* log.c: between hold and release, DPDK prints nothing, and its first error is the reason. */
void dpdk_log_hold(void);
const char *dpdk_log_reason(void);
void dpdk_log_release(void);

#endif
