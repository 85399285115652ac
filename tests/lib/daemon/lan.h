/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host in memory: its switch, processes with vNICs of the in-process transport, and stations at
 * the far ends of its uplinks. DPDK must be initialised, which lan_start does once.
 */
#ifndef URXE_TEST_LAN_H
#define URXE_TEST_LAN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

#include "urxed/switch/forward.h"
#include "vnic_loop.h"

#define LAN_STATIONS  4
#define LAN_PROCESSES 64
#define LAN_MTU       1500
#define LAN_LEN       100 /* length of the frames of lan_frame, bytes */
#define LAN_T0        1000000000ull

struct lan_attr {
	uint32_t n_processes;
	uint32_t n_stations;
	uint32_t first_vm;        /* stations from this one on are virtual machines */
	const char *const *specs; /* port specifications of the stations' uplinks */
	uint32_t depth;           /* capacity of a station's receive ring, frames */
	const char *const *addresses;
	uint32_t n_addresses;
};

struct lan {
	struct host host;
	struct neigh neigh;
	struct vswitch sw;
	uint32_t n_stations, n_processes;
	struct uplink uplinks[LAN_STATIONS];
	struct netdev *far[LAN_STATIONS]; /* the stations' ends of the uplinks */
	struct vnic_loop *loops[LAN_PROCESSES];
	struct switch_port processes[LAN_PROCESSES];
	uint32_t qpn[LAN_PROCESSES]; /* first leased QPN of each process */
	uint64_t now;                /* at first LAN_T0 */
};

/* The host's MAC on each uplink; its processes have the first one. */
extern const uint8_t lan_macs[LAN_STATIONS][6];

/* A setup function of cmocka_run_group_tests, whose argument is unused; other callers pass NULL. */
int lan_start(void **state);
struct lan *lan_open(const struct lan_attr *attr);
void lan_close(struct lan *lan);

/* Adds a process with any lease, in place of a process that has left. */
void lan_join(struct lan *lan, uint32_t process);

/* A datagram from 10.0.0.1 to 10.0.0.2 that a process with a lease from src_qpn on may send. */
struct urxe_packet lan_datagram(const uint8_t dmac[6], uint32_t dest_qpn, uint32_t src_qpn);
/* The frame of a packet, with any headers. It ends with the mark, which identifies the frame. */
void lan_frame(uint8_t f[LAN_LEN], const struct urxe_packet *p, uint32_t mark);

/* Puts a frame into a process's transmit ring; false: the ring is full. */
bool lan_post(struct lan *lan, uint32_t process, const uint8_t *f, uint32_t len);
/* Takes a frame of lan_frame that a process has received; returns its mark, or -1 for no frame. */
int64_t lan_receive(struct lan *lan, uint32_t process);
/* A station sends a frame; its ring must have room. */
void lan_send(struct lan *lan, uint32_t station, const uint8_t *f, uint32_t len);

/* Checks that frames in plus copies equal frames out plus drops plus frames that wait. */
void lan_check_sums(const struct lan *lan);

#endif
