/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_BENCH_TCP_LATENCY_H
#define URXE_BENCH_TCP_LATENCY_H

#include <netinet/in.h>
#include <stddef.h>

#include "two.h"

/*
 * Two ends of one connection without Nagle's algorithm. fds[1] has `address`; fds[0] is in the
 * network namespace of that path, or with NULL in the same, and the caller is in it from then on.
 */
void tcp_connect_pair(int fds[2], struct in_addr address, const char *netns);

/*
 * Seconds, one way, of messages of `size` bytes that go to and fro by TCP while both ends poll. One
 * end has `address`; the other one is in the network namespace of that path, or with NULL in the
 * same, and the caller is in it from then on.
 */
double tcp_latency(const struct bench_cpus *cpus, size_t size, struct in_addr address,
		   const char *netns);

#endif
