/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MAC and idle sleep of an end of the cable, for station.c, raw_latency.c and bench.c. */
#ifndef URXE_BENCH_ENDPOINT_H
#define URXE_BENCH_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct netdev;

#define ENDPOINT_NAP_NS (20 * NS_PER_MS)

/* The port's MAC; if the port has none, a locally administered MAC that depends on the PID. */
void endpoint_mac(const struct netdev *port, uint8_t mac[6]);
/*
 * Did the last frame arrive more than 100 ms ago, so that a listener may sleep? Times of now_ns().
 */
bool endpoint_quiet(uint64_t last_rx, uint64_t now);
/* Sleeps for ENDPOINT_NAP_NS. Does not wait for the port's descriptor instead, because from then on
 * each empty poll of the port would cost a system call (netdev_wait_fd). */
void endpoint_nap(void);

#endif
