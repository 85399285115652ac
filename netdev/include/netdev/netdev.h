/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frame ports: things that take and give whole Ethernet frames without FCS.
 *
 * A port has one user at a time. Ports stack: a fault port sits on another port
 * and spoils what passes. Functions that return int give 0 or a negative errno
 * value.
 */
#ifndef URXE_NETDEV_NETDEV_H
#define URXE_NETDEV_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;

/* A received frame, or one to send. */
struct netdev_frame {
	const uint8_t *data;
	uint32_t len;      /* bytes at data */
	uint32_t wire_len; /* bytes on the wire; more than len where a capture was cut (snap length)
			    */
	uint64_t time; /* ns; when it was captured or falls due, 0 where the port has no clock */
};

/*
 * Up to n received frames, valid until the next call on the port. `now` is the
 * time in nanoseconds that a port with delays goes by.
 */
uint32_t netdev_rx(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n);
/* Sends up to n frames; returns how many were taken, in order. They are copied. */
uint32_t netdev_tx(struct netdev *port, uint64_t now, const struct netdev_frame *frames,
		   uint32_t n);
/* When netdev_rx has something of its own accord (delayed frames); UINT64_MAX = never. */
uint64_t netdev_next_deadline(struct netdev *port);
/* A descriptor to poll(2) for received frames; -1 = none, ask again after netdev_idle_ns. */
int netdev_wait_fd(struct netdev *port);
/* How often to ask a port without a descriptor, ns. */
uint64_t netdev_idle_ns(struct netdev *port);
void netdev_close(struct netdev *port);

/* --- In memory: two ports, back to back, `depth` frames each way; more are refused. */
int netdev_mem_pair(uint32_t depth, struct netdev *ends[2]);

/* --- Capture files, pcap and pcapng, Ethernet link type. */
/* Reads: rx gives the frames; tx refuses. On error `why` gets a sentence. */
int netdev_pcap_open(const char *path, struct netdev **port, char *why, uint32_t why_size);
/* 1 at the end of the file, 0 before it; negative errno where the file is cut short or broken. */
int netdev_pcap_status(const struct netdev *port);
/* Writes a pcap with nanosecond times: tx appends; rx gives nothing. */
int netdev_pcap_create(const char *path, struct netdev **port, char *why, uint32_t why_size);

/* --- Faults, applied to frames sent through it; probabilities in 0..1. */
struct netdev_fault {
	uint64_t seed;
	double drop;
	double duplicate;
	double reorder; /* a reordered frame is held for up to reorder_ns */
	double corrupt; /* one random bit is flipped */
	uint64_t reorder_ns;
	uint64_t delay_ns; /* of every frame */
};

struct netdev_fault_counters {
	uint64_t passed, dropped, duplicated, reordered, corrupted;
};

/* Takes `below` over: closing the fault port closes it. */
int netdev_fault_open(struct netdev *below, const struct netdev_fault *fault, struct netdev **port);
void netdev_fault_counters(const struct netdev *port, struct netdev_fault_counters *counters);

/* --- DPDK ethdev ports. Own library; the only one that knows DPDK. */
/*
 * spec: af_packet:IFACE, af_xdp:IFACE, tap:NAME, pcap:FILE (replays a file), or
 * dpdk:ARGS for anything EAL knows (a vdev string or a PCI address). The EAL is
 * started at the first call. On error `why` gets one sentence.
 */
int netdev_dpdk_open(const char *spec, uint32_t mtu, struct netdev **port, char *why,
		     uint32_t why_size);

#endif
