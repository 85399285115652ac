/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port of the switch to an Ethernet or a virtual machine, with its transmit queue. The switch
 * sends and receives on it; kernel_sync keeps its MAC, MTU and link state.
 */
#ifndef URXE_URXED_UPLINK_UPLINK_H
#define URXE_URXED_UPLINK_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>

#include "common/port_open.h"
#include "urxed/hostnet/host.h"
#include "urxed/kernel/iface_watch.h"
#include "urxed/kernel/roce_port_guard.h"
#include "urxed/uplink/fault_option.h"
#include "urxed/vhost/vhost_process.h"

#define UPLINK_ERROR PORT_OPEN_ERROR
#define UPLINK_QUEUE 64
/* MACs beside its own for which an uplink receives frames. */
#define UPLINK_MACS 2

struct hca_monitor;

enum uplink_kind {
	UPLINK_WIRE, /* an Ethernet */
	UPLINK_VM,   /* a virtual machine, a station of its own */
};

struct uplink {
	const char *spec;
	enum uplink_kind kind;
	const struct uplink_impair *impair;
	/*
	 * Knows the RDMA devices of the host: one (rdma_rxe) may have UDP port 4791 of the
	 * interface.
	 */
	const struct hca_monitor *hca;
	struct netdev *port;        /* NULL = closed, to be opened again */
	struct vhost_process vhost; /* valid if is_vhost: the process that serves the port */
	bool is_vhost;
	bool impaired; /* `port` is an impairment layer on the device's port */
	/* Present name of the kernel's interface; that in `spec` if the interface has gone; "" =
	 * none. */
	char ifname[HOST_NDEV_LEN];
	bool kernel; /* a kernel interface, whose addresses become the host's */
	int claim;   /* of that interface (iface_claim.h); -1 = none */
	uint8_t mac[ETHER_MAC_LEN];
	bool bonded;                      /* a member of the daemon's bond (bond.h) */
	uint8_t probe_mac[ETHER_MAC_LEN]; /* source of the bond's probes through this member */
	uint8_t heard_macs[UPLINK_MACS][ETHER_MAC_LEN]; /* uplink_hear_mac */
	uint32_t n_heard_macs;
	bool hears_all;   /* receives frames for VMs, too; a closed port will do so when opened */
	bool up;          /* has a link, as far as is known */
	uint16_t mtu;     /* current MTU */
	uint16_t mtu_max; /* MTU that the port was opened for */
	uint16_t nic_mtu; /* MTU to expect of a NIC behind the port; 0 = not less than mtu */
	uint32_t generation; /* changes when direct uplinks (direct_uplink.h) begin anew */
	struct roce_port_guard port_guard; /* on the kernel's interface */
	struct iface_watch watch;          /* on the kernel's interface */
	uint64_t full_since; /* time when the port began to refuse frames; 0 = it takes them */
	uint64_t refused_at; /* time of the last uplink_send if it left frames; else 0 */
	uint8_t *buffers;    /* UPLINK_QUEUE buffers of the transmit queue */
	uint32_t stride;     /* bytes of a buffer */
	uint32_t queued;     /* frames in the queue */
	uint32_t lost;       /* frames that were in the queue when it was freed, not counted yet */
	struct netdev_frame queue[UPLINK_QUEUE];
};

/* The kind of port that a specification names. */
enum uplink_kind uplink_kind_of(const char *spec);
/*
 * Opens the port that `spec` names (port_open), with impairments if wanted. A vhost: port gets a
 * process of its own. Returns 0 or a negative errno value; on error `error` holds a sentence, and
 * the uplink is closed. The uplink refers to spec, impair and hca: they must stay valid as long as
 * `u` is used.
 */
int uplink_open(struct uplink *u, const char *spec, const struct uplink_impair *impair,
		const struct hca_monitor *hca, char error[UPLINK_ERROR]);
/*
 * Opens the port again after the kernel's interface was replaced or changed. Frames in the transmit
 * queue and in the port's rings are lost. Returns as uplink_open. On error the port is closed, also
 * if only a setting of uplink_hear_all or uplink_hear_mac failed, and keeps its name, MACs, MTU and
 * generation; the next uplink_reopen makes the same settings.
 */
int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR]);
/*
 * Has the kernel's interface gone since the port was opened? Then the port receives nothing any
 * more, also if the interface is back.
 */
bool uplink_has_lost_interface(const struct uplink *u);
/* Is it an af_xdp: port, which shares its interface with the kernel by an XDP program? */
bool uplink_is_xdp(const struct uplink *u);
/*
 * Makes the port receive frames for other stations, too (netdev_set_promiscuous), for VMs; a closed
 * port as soon as it is open again. A lost `tap:` stays closed. This function and the other
 * uplink_hear_ ones return 0, or a negative errno value and a sentence in `error`.
 */
int uplink_hear_all(struct uplink *u, char error[UPLINK_ERROR]);
/*
 * Undoes uplink_hear_all. Without effect for an uplink with further MACs (uplink_hear_mac) that is
 * no kernel interface: its device may receive frames to these MACs in promiscuous mode only.
 */
int uplink_hear_own(struct uplink *u, char error[UPLINK_ERROR]);
/*
 * Makes the port receive frames to another MAC (netdev_add_mac), also after uplink_reopen. The
 * caller adds at most UPLINK_MACS.
 */
int uplink_hear_mac(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR]);
/*
 * Makes the port receive frames to a multicast MAC that the device would filter out
 * (netdev_add_group). Without effect on a closed port: only the port of a kernel's interface opens
 * again, and it filters neither groups nor VLANs.
 */
int uplink_hear_group(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR]);
/*
 * Makes the port receive frames of a VLAN that the device would filter out (netdev_add_vlan).
 * Without effect on a closed port.
 */
int uplink_hear_vlan(struct uplink *u, uint16_t vlan, char error[UPLINK_ERROR]);
void uplink_close(struct uplink *u);
/* Closes the uplink, and logs that its interface has gone unless it is closed already. */
void uplink_close_lost(struct uplink *u);
/* Logs the page size of the port's packet buffers; nothing if the port is closed. */
void uplink_log_pages(const struct uplink *u);
/* Logs the impairment counters that are not 0; nothing without impairments. */
void uplink_log_impairments(const struct uplink *u);

/* Allocates the transmit queue for u->mtu. Returns 0 or -ENOMEM. */
int uplink_make_queue(struct uplink *u);
/* Frees the queue, and adds its frames to u->lost, which the switch counts as drops. */
void uplink_free_queue(struct uplink *u);
/* Whether the queue has room for n frames; a closed port drops them, and needs none. */
bool uplink_has_room(const struct uplink *u, uint32_t n);
/* Buffer of u->stride bytes for the next frame; NULL = the queue is full. */
uint8_t *uplink_reserve(struct uplink *u);
/* Queues the frame of len bytes in the buffer reserved last. */
void uplink_commit(struct uplink *u, uint32_t len);
/*
 * Sends queued frames as far as the port takes them; returns their number. They stay in the queue
 * until uplink_release.
 */
uint32_t uplink_send(struct uplink *u, uint64_t now);
/* Removes the first n frames from the queue. */
void uplink_release(struct uplink *u, uint32_t n);
/* Discards the frames in the queue, which the caller has counted as drops. */
void uplink_purge(struct uplink *u);

#endif
