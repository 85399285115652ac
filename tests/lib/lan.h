/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host in memory: its switch, processes with vNICs of the in-process transport, and
 * stations at the far ends of its uplinks. DPDK has to be up: lan_start does that, once.
 */
#ifndef URXE_TEST_LAN_H
#define URXE_TEST_LAN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>
#include <vnic/loop.h>

#include "urxed/switch/forward.h"

#define LAN_STATIONS  4
#define LAN_PROCESSES 2
#define LAN_MTU       1500
#define LAN_LEN       100 /* bytes of a frame that lan_frame makes */
#define LAN_T0        1000000000ull

struct lan_attr {
	uint32_t n_processes;
	uint32_t n_stations;
	uint32_t first_vm;        /* stations from this one on are virtual machines */
	const char *const *specs; /* of the stations' uplinks */
	uint32_t depth;           /* frames that a station has room for */
	const char *const *addresses;
	uint32_t n_addresses;
};

struct lan {
	struct host host;
	struct neigh neigh;
	struct vswitch sw;
	uint32_t n_stations, n_processes;
	struct uplink uplinks[LAN_STATIONS];
	struct netdev *far[LAN_STATIONS]; /* what a station has */
	struct vnic_loop *loops[LAN_PROCESSES];
	struct switch_port processes[LAN_PROCESSES];
	uint32_t qpn[LAN_PROCESSES]; /* the first that each has leased */
	uint64_t now;                /* at first LAN_T0 */
};

/* The host's MAC on each uplink; the first is what its processes have. */
extern const uint8_t lan_macs[LAN_STATIONS][6];

/* For cmocka_run_group_tests, which takes no argument from it; other callers pass NULL. */
int lan_start(void **state);
struct lan *lan_open(const struct lan_attr *attr);
void lan_close(struct lan *lan);

/* Another process comes, with any lease, when the one that was there has left. */
void lan_join(struct lan *lan, uint32_t process);

/* A datagram that a process with a lease from src_qpn may send: from 10.0.0.1 to 10.0.0.2. */
struct urxe_packet lan_datagram(const uint8_t dmac[6], uint32_t dest_qpn, uint32_t src_qpn);
/* The frame of a packet, whatever its headers; the mark, which tells frames apart, ends it. */
void lan_frame(uint8_t f[LAN_LEN], const struct urxe_packet *p, uint32_t mark);

/* Puts a frame into a process's transmit ring; false: that is full. */
bool lan_post(struct lan *lan, uint32_t process, const uint8_t *f, uint32_t len);
/* Takes a frame of lan_frame's that a process has received; its mark, or -1 for none. */
int64_t lan_receive(struct lan *lan, uint32_t process);
/* A station sends a frame, for which there has to be room. */
void lan_send(struct lan *lan, uint32_t station, const uint8_t *f, uint32_t len);

/* What came in, and the copies that were made of it, is out, dropped, or waits. */
void lan_check_sums(const struct lan *lan);

#endif
