/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each end of a cable needs, with an engine or without. */
#ifndef URXE_BENCH_ENDPOINT_H
#define URXE_BENCH_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct netdev;

#define ENDPOINT_NAP_NS (20 * NS_PER_MS)

/* The port's address. One without an address has a peer that asks for none: any local one. */
void endpoint_mac(const struct netdev *port, uint8_t mac[6]);
/* Whether nothing has come for 100 ms, so that one that listens may nap; times of now_ns(). */
bool endpoint_quiet(uint64_t heard, uint64_t now);
/*
 * Sleeps for ENDPOINT_NAP_NS. Not on the port's descriptor: who has taken that pays a system call
 * for each empty look at it.
 */
void endpoint_nap(void);

#endif
