/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A port of the switch to an Ethernet or a virtual machine, with its transmit queue. The switch
 * sends and receives through it; kernel_sync keeps its MAC, MTU and link state up to date. */
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
/* Number of MACs beside its own for which an uplink can receive frames. */
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
	/* Knows the host's RDMA devices: UDP port 4791 may be bound by the one (rdma_rxe) on the
	 * interface. */
	const struct hca_monitor *hca;
	struct netdev *port;        /* NULL = closed; kernel_sync may open it again */
	struct vhost_process vhost; /* valid if is_vhost: the process that serves the port */
	bool is_vhost;
	bool impaired; /* `port` is an impairment layer on the device's port */
	/* Present name of the kernel's interface; if the interface has gone, its last name; "" =
	 * none. */
	char ifname[HOST_NDEV_LEN];
	bool kernel; /* the port is on a kernel interface, whose addresses become the host's */
	int claim;   /* claim of that interface (iface_claim.h); -1 = none */
	uint8_t mac[ETHER_MAC_LEN];
	bool bonded;                      /* a member of the daemon's bond (bond.h) */
	uint8_t probe_mac[ETHER_MAC_LEN]; /* source of the bond's probes through this member */
	uint8_t heard_macs[UPLINK_MACS][ETHER_MAC_LEN]; /* the MACs of uplink_hear_mac */
	uint32_t n_heard_macs;
	bool hears_all;   /* receives frames for VMs, too; a closed port will do so when opened */
	bool hears_some;  /* the last uplink_hear_all or uplink_hear_own failed: the port may have
			     parts of either filter, so the next change must set it anew */
	bool up;          /* the port has a link, as far as the daemon knows */
	uint16_t mtu;     /* present MTU, bytes of Ethernet payload */
	uint16_t mtu_max; /* MTU for which the port was opened */
	uint16_t nic_mtu; /* probable MTU of a NIC behind the port; 0 = not less than mtu */
	uint32_t generation; /* changes when direct uplinks (direct_uplink.h) begin anew */
	struct roce_port_guard port_guard; /* on the kernel's interface */
	struct iface_watch watch;          /* on the kernel's interface */
	uint64_t full_since; /* time since which the port has taken no frame, though some wait;
				0 = none was refused */
	uint64_t refused_at; /* time of the last uplink_send if frames were left over; else 0 */
	uint8_t *buffers;    /* UPLINK_QUEUE buffers of the transmit queue */
	uint32_t stride;     /* size of a buffer, bytes */
	uint32_t queued;     /* number of frames in the queue */
	uint32_t lost;       /* frames that were in the queue when it was freed, not counted yet */
	struct netdev_frame queue[UPLINK_QUEUE];
};

/* Returns the kind of port that a specification names. */
enum uplink_kind uplink_kind_of(const char *spec);
/*
 * Opens the port that `spec` names (port_open), with impairments if the user wants them. A vhost:
 * port gets a process of its own. Returns 0 or a negative errno value; on error `error` has a
 * sentence, and the uplink is closed. The uplink keeps the pointers spec, impair and hca, which
 * must stay valid as long as `u` is used.
 */
int uplink_open(struct uplink *u, const char *spec, const struct uplink_impair *impair,
		const struct hca_monitor *hca, char error[UPLINK_ERROR]);
/*
 * Opens the port again after the kernel's interface was replaced or changed. Frames in the transmit
 * queue and in the port's rings are lost. Returns as uplink_open. On error the port is closed, even
 * if only a setting of uplink_hear_all or uplink_hear_mac failed. It then keeps its name, MACs, MTU
 * and generation, and the next uplink_reopen makes the same settings.
 */
int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR]);
/* Returns whether the kernel's interface has gone since the port was opened. The port then receives
 * nothing any more, even if the interface is back. */
bool uplink_has_lost_interface(const struct uplink *u);
/* Returns whether it is an af_xdp: port, whose XDP program shares the interface with the kernel. */
bool uplink_is_xdp(const struct uplink *u);
/*
 * Makes the port receive frames to other stations, too (netdev_set_promiscuous), for VMs. A closed
 * port does so when it is open again; but a tap: that lost its interface stays closed. This
 * function and the other uplink_hear_ ones return 0, or a negative errno value and a sentence in
 * `error`.
 */
int uplink_hear_all(struct uplink *u, char error[UPLINK_ERROR]);
/*
 * Undoes uplink_hear_all. Has no effect on an uplink with further MACs (uplink_hear_mac) that is no
 * kernel interface, because its device may receive frames to these MACs only in promiscuous mode.
 */
int uplink_hear_own(struct uplink *u, char error[UPLINK_ERROR]);
/* Makes the port receive frames to another MAC (netdev_add_mac), and again after uplink_reopen. The
 * caller adds at most UPLINK_MACS. */
int uplink_hear_mac(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR]);
/*
 * Makes the port receive frames to a multicast MAC that its device would filter out
 * (netdev_add_group). Has no effect on a closed port: only ports of kernel interfaces are opened
 * again, and these filter neither groups nor VLANs.
 */
int uplink_hear_group(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR]);
/* Makes the port receive frames of a VLAN that its device would filter out (netdev_add_vlan). Has
 * no effect on a closed port. */
int uplink_hear_vlan(struct uplink *u, uint16_t vlan, char error[UPLINK_ERROR]);
void uplink_close(struct uplink *u);
/* Closes the uplink, which then has no link; logs that its interface has gone, unless the port was
 * closed already. */
void uplink_close_lost(struct uplink *u);
/* Logs the page size of the port's packet buffers; does nothing if the port is closed or reports
 * none. */
void uplink_log_pages(const struct uplink *u);
/* Logs the impairment counters that are not 0; does nothing without impairments. */
void uplink_log_impairments(const struct uplink *u);

/* Allocates the transmit queue for u->mtu. Returns 0 or -ENOMEM. */
int uplink_make_queue(struct uplink *u);
/* Frees the queue, and adds its frames to u->lost, which the switch counts as drops. */
void uplink_free_queue(struct uplink *u);
/* Whether the queue has room for n frames. A closed port needs none, because it drops frames. */
bool uplink_has_room(const struct uplink *u, uint32_t n);
/* Returns a buffer of u->stride bytes for the next frame; NULL = the queue is full, or the port is
 * closed. */
uint8_t *uplink_reserve(struct uplink *u);
/* Queues the frame of len bytes in the buffer that uplink_reserve returned last. */
void uplink_commit(struct uplink *u, uint32_t len);
/* Sends as many queued frames as the port takes; returns their number. They stay in the queue until
 * uplink_release. */
uint32_t uplink_send(struct uplink *u, uint64_t now);
/* Removes the first n frames from the queue. */
void uplink_release(struct uplink *u, uint32_t n);
/* Discards the frames in the queue, which the caller has counted as drops. */
void uplink_purge(struct uplink *u);

#endif
