/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A port of the switch to a real Ethernet or a virtual machine, with a queue of frames on their way
 * out. */
#ifndef URXE_URXED_UPLINK_UPLINK_H
#define URXE_URXED_UPLINK_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>

#include "common/port_open.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/roce_port_guard.h"
#include "urxed/uplink/impair.h"

#define UPLINK_ERROR PORT_OPEN_ERROR
#define UPLINK_QUEUE 64

enum uplink_kind {
	UPLINK_WIRE, /* a real Ethernet */
	UPLINK_VM,   /* a virtual machine: a station of its own */
};

struct uplink {
	const char *spec;
	enum uplink_kind kind;
	const struct uplink_impair *fault;
	struct netdev *port;        /* NULL: it is to be opened again */
	bool spoiled;               /* port is a fault port on the device's */
	char ifname[HOST_NDEV_LEN]; /* the kernel's interface; "" = there is none */
	bool kernel;                /* its kernel addresses are ours too */
	uint8_t mac[ETHER_MAC_LEN];
	bool hears_all;              /* also what is for VMs */
	bool up;                     /* it has a link, as far as one can tell */
	uint16_t mtu;                /* what it carries now */
	uint16_t mtu_max;            /* what the port was opened for */
	struct roce_port_guard hold; /* of the kernel's interface */
	uint64_t full_since; /* when the port last began to refuse frames; 0 = it takes them */
	uint8_t *room;       /* UPLINK_QUEUE buffers */
	uint32_t stride;     /* bytes of a buffer */
	uint32_t queued;
	struct netdev_frame queue[UPLINK_QUEUE];
};

/*
 * Opens the port that spec names (netdev_dpdk_open), with faults where they are asked for. On error
 * `error` gets one sentence. Spec and fault stay where they are.
 */
int uplink_open(struct uplink *u, const char *spec, const struct uplink_impair *fault,
		char error[UPLINK_ERROR]);
/*
 * The kernel's interface is another one of that name, or is not what it was when the port was
 * opened. What is queued and in the port's rings is lost. On error there is no port.
 */
int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR]);
/* Whether it is an af_xdp: port, which shares its interface with the kernel by a program of BPF. */
bool uplink_is_xdp(const struct uplink *u);
/* Hears what is for other stations too (netdev_hear_all), for VMs. */
int uplink_hear_all(struct uplink *u, char error[UPLINK_ERROR]);
/* Hears frames of a VLAN, too, where the device would keep them back (netdev_hear_vlan). */
int uplink_hear_vlan(struct uplink *u, uint16_t vlan, char error[UPLINK_ERROR]);
void uplink_close(struct uplink *u);
/* Tells which pages the port has got, which are its for good; nothing where there is no port. */
void uplink_log_pages(const struct uplink *u);
/* Tells what the fault port, if there is one, did to the frames: a line for each count but 0. */
void uplink_log_impairments(const struct uplink *u);

/* A buffer of u->stride bytes for the next frame; NULL: the queue is full. */
uint8_t *uplink_reserve(struct uplink *u);
/* Queues the frame of len bytes in the buffer reserved last. */
void uplink_commit(struct uplink *u, uint32_t len);
/*
 * Sends what is queued, as far as the port takes it; returns how many of the first
 * frames that were. They stay in the queue until released.
 */
uint32_t uplink_send(struct uplink *u, uint64_t now);
/* The first n frames leave the queue. */
void uplink_release(struct uplink *u, uint32_t n);
/* Gives up what is queued. */
void uplink_purge(struct uplink *u);

#endif
