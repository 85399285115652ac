/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A veth cable for tests of DPDK ports: the port is at its end pa, the test sends at its end pb. */
#ifndef URXE_SMOKE_UPLINKS_CABLE_H
#define URXE_SMOKE_UPLINKS_CABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>

/* Other tests on the machine may delay a process for this long. */
#define CABLE_PATIENCE_MS 10000

/* Runs a command; returns its wait status. */
int cable_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Plugs the cable, without other traffic. */
void cable_plug(void);
/* The same, and opens a port at pa. */
struct netdev *cable_open(const char *spec);
void cable_remove(void);
/* A non-blocking packet socket that receives all frames of the interface. */
int cable_socket(const char *iface);

/* Makes pa a tap, whose far end is a virtual machine's NIC. Returns its descriptor; -1: no tap. */
int cable_tap(void);
/* Sends a UDP frame over IPv4 as the machine; gso_type: of virtio's header, with segments of 100
 * bytes. */
void cable_tap_send(int tap, const uint8_t *frame, uint32_t length, uint8_t gso_type);

/* Skips the running test, and says why. */
void cable_skip(const char *reason);

/* Sends n RoCEv2 packets as one UDP GSO packet, each with `payload` bytes behind the UDP header, of
 * which the BTH is a part. False: Linux before 6.2, which has no such packets. */
bool cable_send_run(const char *iface, const uint8_t to[6], uint32_t n, uint32_t payload);
/* The test fails unless the port receives the packets of such a run one by one, and only those. */
void cable_expect_run(struct netdev *port, const uint8_t to[6], uint32_t n, uint32_t payload);

uint64_t cable_counter(struct netdev *port, enum netdev_counter which);
/*
 * Builds an Ethernet header, and a payload that `seed` determines. Returns the frame's length in
 * bytes.
 */
uint32_t cable_frame(uint8_t *frame, const uint8_t to[6], const uint8_t from[6], uint16_t type,
		     uint32_t payload, uint8_t seed);
/* Sends a frame; the test fails if the port does not take it. */
void cable_send(struct netdev *port, const uint8_t *bytes, uint32_t length);

#endif
