/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_BENCH_TCP_LATENCY_H
#define URXE_BENCH_TCP_LATENCY_H

#include <netinet/in.h>
#include <stddef.h>

#include "lib/two.h"

/*
 * Creates both ends of a connection without Nagle's algorithm. fds[1] has `address`. fds[0] is in
 * the network namespace of path `netns`, or in the same one with NULL. The caller enters that
 * namespace.
 */
void tcp_connect_pair(int fds[2], struct in_addr address, const char *netns);

/*
 * Seconds, one way, of a ping-pong of `size` bytes over TCP with both ends polling, between the
 * ends of tcp_connect_pair.
 */
double tcp_latency(const struct bench_cpus *cpus, size_t size, struct in_addr address,
		   const char *netns);

#endif
