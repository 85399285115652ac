/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Starts DPDK's environment abstraction layer (EAL), of which a process has one, and its log. */
#ifndef URXE_NETDEV_DPDK_EAL_H
#define URXE_NETDEV_DPDK_EAL_H

#include <stdint.h>

#include "dpdk/spec.h"

/*
 * Starts the EAL as the port of `spec` needs it; spec NULL: for no port, as urxed needs it for the
 * switch's hash tables and for telemetry. 0 also if the EAL has started already. -EINVAL: it has
 * started without PCI, which the port needs; -EIO: an earlier start failed; or another negative
 * errno value. `error` gets one sentence.
 */
int dpdk_eal_start(const struct dpdk_spec *spec, char *error, uint32_t error_size);

/* In dpdk_log.c. Between hold and release DPDK prints nothing; dpdk_log_reason returns the first
 * error that DPDK reported since hold, or a text that says there was none. */
void dpdk_log_hold(void);
const char *dpdk_log_reason(void);
void dpdk_log_release(void);

#endif
