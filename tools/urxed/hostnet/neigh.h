/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resolves destination GIDs to MACs by ARP (RFC 826) and ND (RFC 4861), and answers ARP and ND for
 * this host's addresses. Sessions, the CM and the switch call it; it performs no I/O itself.
 *
 * For a source address that the kernel has too, the kernel's routes and neighbours decide
 * (route.h). From other source addresses only on-link destinations are reachable.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_H
#define URXE_URXED_HOSTNET_NEIGH_H

#include <stdint.h>

#include "urxed/hostnet/host.h"

#define NEIGH_TRIES      3
#define NEIGH_TRY_NS     1000000000ull  /* RETRANS_TIMER (RFC 4861, 10) */
#define NEIGH_LIFE_NS    60000000000ull /* after which a neighbour is solicited again */
#define NEIGH_ENTRIES    256
#define NEIGH_FRAME_ROOM 128 /* bytes, at least the length of each frame sent here */

/* The module that receives the answer. */
enum neigh_asker { NEIGH_FOR_SESSION, NEIGH_FOR_GSI, NEIGH_FOR_CMA };

/* A pending request for a next hop. The caller keeps it in place until the answer or the cancel. */
struct neigh_waiter {
	struct neigh_waiter *next;
	uint8_t asker;     /* enum neigh_asker; the caller sets it after -EINPROGRESS */
	uint8_t ip[16];    /* of the next hop */
	uint8_t hop_limit; /* of the kernel's route to the destination */
	int ifindex;       /* interface on which the kernel resolves; 0 = this module resolves */
	uint64_t due;      /* deadline of the kernel's answer */
};

/* `uplink` of a frame from a VM, to which only this module answers for the host's addresses. */
#define NEIGH_VM -2

struct neigh_ops {
	void (*send)(void *ctx, int uplink, const uint8_t *frame, uint32_t len);
	/* Returns the source MAC of ARP and ND frames on an uplink. */
	const uint8_t *(*mac)(void *ctx, int uplink);
	/* status: 0, or -EHOSTUNREACH or -ENETUNREACH with hop NULL */
	void (*answer)(void *ctx, struct neigh_waiter *w, int status,
		       const struct vnic_next_hop *hop);
};

struct route;

enum neigh_state { NEIGH_FREE, NEIGH_INCOMPLETE, NEIGH_REACHABLE };

struct neigh_entry {
	enum neigh_state state;
	uint8_t ip[16];
	uint8_t mac[ETHER_MAC_LEN];
	struct host_address from; /* this host's address in its subnet */
	uint32_t tries;
	uint64_t due; /* time of the next solicitation, or of expiry */
};

struct neigh {
	const struct host *host;
	struct route *route; /* the kernel's routes; NULL = no uplink is a kernel interface */
	bool vms;            /* the switch has VMs, which the kernel cannot reach */
	const struct neigh_ops *ops;
	void *ctx;
	struct neigh_waiter *waiters;
	uint32_t n_incomplete; /* entries in state NEIGH_INCOMPLETE */
	struct neigh_entry entries[NEIGH_ENTRIES];
};

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx);

/*
 * Finds the next hop from GID sgid_index to dgid. -EINPROGRESS: ops->answer will be called with w.
 * -ENETUNREACH, -EHOSTUNREACH: no next hop exists; -EINVAL: the GID entry is empty.
 */
int neigh_resolve(struct neigh *n, uint64_t now, uint8_t sgid_index, const uint8_t dgid[16],
		  struct neigh_waiter *w, struct vnic_next_hop *hop);

/*
 * Call after a change of the host's addresses. Requests from removed addresses end with
 * -ENETUNREACH.
 */
void neigh_host_changed(struct neigh *n);
/* Cancels w; does nothing if w does not wait. */
void neigh_cancel(struct neigh *n, const struct neigh_waiter *w);

/* Learns from and answers an ARP or ND frame from an uplink or NEIGH_VM; ignores other frames. */
void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len);

/*
 * Sends due solicitations and ends timed-out requests; returns the next deadline, UINT64_MAX =
 * none.
 */
uint64_t neigh_tick(struct neigh *n, uint64_t now);

#endif
