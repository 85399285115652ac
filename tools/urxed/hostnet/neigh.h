/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resolves destination GIDs to MACs by ARP (RFC 826) and ND (RFC 4861). Sessions, the CM and the
 * switch call this; it performs no I/O itself. arp_nd.c answers ARP and ND for this host's
 * addresses.
 *
 * If the kernel has the source address, too, the kernel's routes and neighbours decide (route.h),
 * except on-link while virtual machines or a bond exist (vm_mask and bond_mask below). From other
 * source addresses only on-link destinations are reachable.
 *
 * Any station on a link can claim any address. So a claim replaces a known MAC only after the
 * station with the known MAC has left all probes unanswered (0.3 s). --fdb, or a permanent entry of
 * the kernel, pins the MAC of an address.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_H
#define URXE_URXED_HOSTNET_NEIGH_H

#include <stdint.h>

#include "urxed/hostnet/address_pin.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh_table.h"
#include "urxed/session/user_counts.h"

#define NEIGH_TRIES    3
#define NEIGH_TRY_NS   1000000000ull /* RETRANS_TIMER (RFC 4861, 10) */
#define NEIGH_PROBES   3
#define NEIGH_PROBE_NS 100000000ull /* between two probes of the known MAC */
/*
 * After the station of an entry has answered: time without further probes by neigh_probe_station,
 * or, if the answer has refuted another station's claim, because of such claims (quiet_until). Also
 * how long a station without an answer counts as gone (silent_until).
 */
#define NEIGH_QUIET_NS 1000000000ull
/* If a MAC was confirmed this long ago, the next use of the entry makes neigh.c solicit the
 * neighbour again. */
#define NEIGH_LIFE_NS     60000000000ull
#define NEIGH_FRAME_ROOM  128  /* bytes, at least the length of each frame sent here */
#define NEIGH_WAITERS_MAX 4096 /* of all users; each user has a quota (quota.h) */

/* The counters of neigh.h, each as X(identifier, printed name, meaning). */
#define NEIGH_COUNTER_LIST(X)                                                                  \
	X(DISPLACED, "neigh_displaced",                                                        \
	  "address resolutions ended early for newer ones of the same user or of other hosts") \
	X(REFUTED, "neigh_refuted",                                                            \
	  "claims of another MAC for an address whose known MAC answered a probe")             \
	X(MOVED, "neigh_moved", "addresses whose MAC changed because the known MAC gave no answer")

#define NEIGH_COUNTER_ENUM(id, name, text) NEIGH_COUNT_##id,
enum neigh_counter { NEIGH_COUNTER_LIST(NEIGH_COUNTER_ENUM) NEIGH_COUNTER_COUNT };

/* The module to which the answer goes. */
enum neigh_asker { NEIGH_FOR_SESSION, NEIGH_FOR_GSI, NEIGH_FOR_CMA };

/*
 * A pending request for a next hop. The caller keeps it in place until it is answered or cancelled.
 */
struct neigh_waiter {
	LIST_ENTRY(neigh_waiter) link;
	bool waits;
	bool persistent; /* made by neigh_resolve_persistently */
	uint8_t asker;   /* enum neigh_asker; the caller sets it after -EINPROGRESS */
	uid_t user;
	uint8_t sgid_index; /* index in the GID table of the source, this host's address sgid */
	uint8_t sgid[16];
	uint8_t dgid[16];  /* GID of the destination */
	uint16_t vlan;     /* of source and destination */
	int uplink;        /* the uplink on which the next hop is resolved */
	uint8_t ip[16];    /* of the next hop */
	uint8_t hop_limit; /* of the kernel's route to the destination */
	int ifindex;       /* interface on which the kernel resolves it; 0 = neigh.c resolves it */
	bool permanent;    /* the kernel never checks the next hop's MAC: NUD_PERMANENT or
			      NUD_NOARP */
};

struct neigh_ops {
	void (*send)(void *ctx, int uplink, const uint8_t *frame, uint32_t len);
	/* Returns the source MAC for ARP and ND frames on an uplink. */
	const uint8_t *(*mac)(void *ctx, int uplink);
	/* Gets the result of a resolution: status 0 and the next hop; or -EHOSTUNREACH or
	 * -ENETUNREACH, and hop is NULL. */
	void (*answer)(void *ctx, struct neigh_waiter *w, int status,
		       const struct vnic_next_hop *hop);
	/*
	 * Sends the answer to an ARP or ND request through the bond's member that received the
	 * request.
	 */
	void (*send_by)(void *ctx, int member, const uint8_t *frame, uint32_t len);
};

struct route;

struct neigh {
	const struct host *host;
	struct route *route; /* the kernel's routes; NULL = no uplink is a kernel interface */
	/*
	 * Bit mask of the ports of virtual machines. The kernel cannot reach machines. So while
	 * there are any, neigh.c resolves all on-link addresses, even those that only a route of
	 * the kernel makes on-link.
	 */
	uint32_t vm_mask;
	/*
	 * Bit mask of the uplinks that are members of a bond. neigh.c sees them as one port, that
	 * of the first member. The kernel does not know of the bond, so neigh.c resolves all
	 * on-link addresses, and answers all requests at members for the bond's addresses.
	 */
	uint32_t bond_mask;
	const struct neigh_ops *ops;
	void *ctx;
	uint64_t now;               /* time of the last call, ns */
	uint64_t next_due;          /* before this time, no entry is due, ns */
	struct user_counts waiting; /* number of waiters of each user */
	/* Waiters of displaced entries, which neigh_tick will answer with -EHOSTUNREACH. */
	struct neigh_waiter_list lost;
	struct address_pins pins;
	uint64_t counters[NEIGH_COUNTER_COUNT];
	struct neigh_table table;
};

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx);
/* Call it when all waiters have been answered or cancelled. Accepts a zeroed structure. */
void neigh_fini(struct neigh *n);

/*
 * Finds the next hop from GID sgid_index to dgid, on behalf of a user or of NEIGH_PEERS. Returns 0
 * with the MAC in *hop, or -EINPROGRESS: ops->answer will be called with w after this call.
 * -ENETUNREACH: no next hop exists.
 * -EHOSTUNREACH: the kernel refuses, or the new entry of the table may displace no other.
 * -EINVAL: the GID table's entry is empty.
 * -ENOSPC: the user's quota of waiters is used up; or -ENOMEM.
 */
int neigh_resolve(struct neigh *n, uint64_t now, uid_t user, uint8_t sgid_index,
		  const uint8_t dgid[16], struct neigh_waiter *w, struct vnic_next_hop *hop);
/*
 * As neigh_resolve, but the request does not end if the next hop is silent: neigh.c, or the kernel
 * on its behalf, solicits the next hop until it answers or the caller calls neigh_cancel.
 * -EHOSTUNREACH as answer means that other requests have displaced this one, and -ENETUNREACH that
 * the host's address is gone (neigh_host_changed).
 */
int neigh_resolve_persistently(struct neigh *n, uint64_t now, uid_t user, uint8_t sgid_index,
			       const uint8_t dgid[16], struct neigh_waiter *w,
			       struct vnic_next_hop *hop);

/* Call it after a change of the host's addresses. It ends requests from removed addresses with
 * -ENETUNREACH. */
void neigh_host_changed(struct neigh *n);
/* Cancels w; does nothing if w does not wait. */
void neigh_cancel(struct neigh *n, struct neigh_waiter *w);

/* Learns from an ARP or ND frame of an uplink, and answers a request in it (arp_nd.h); ignores
 * other frames. It is in arp_nd.c. */
void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len);

/* Sends due solicitations and probes, and ends requests that have timed out; returns the next
 * deadline in ns, UINT64_MAX = none. */
uint64_t neigh_tick(struct neigh *n, uint64_t now);
/*
 * Returns the next deadline, ns; neigh_resolve may have made it earlier than neigh_tick returned.
 */
uint64_t neigh_deadline(const struct neigh *n);

/*
 * Returns whether address resolution has found this MAC for the address, or for the router to it,
 * on any uplink. For a pinned address only the pin counts. So a station that invents its source
 * addresses is not known. The call counts as a use of the entry.
 */
bool neigh_knows(struct neigh *n, uint64_t now, const uint8_t ip[16], uint16_t vlan,
		 const uint8_t mac[ETHER_MAC_LEN]);

/*
 * Probes the neighbours that address resolution has found with this MAC at an uplink of the bit
 * mask `wire`, unless they have answered in the last second. Returns whether there are any. If a
 * neighbour leaves all probes unanswered, calls from 0.3 s to 1.3 s later return false, even if the
 * kernel still has the MAC; after that, a neighbour that the kernel still has is probed anew.
 * `unsettled`: bit mask of uplinks whose silent neighbours keep the MAC, because the link is
 * missing or new.
 */
bool neigh_probe_station(struct neigh *n, uint64_t now, uint32_t wire, uint32_t unsettled,
			 const uint8_t mac[ETHER_MAC_LEN]);

/* --- For route.c. */
/*
 * Handles the kernel's result for an entry; mac NULL: the neighbour is unreachable. Then persistent
 * waiters go on waiting, and so do all while neigh.c probes a known MAC. A permanent MAC replaces
 * the known MAC at once. Before another MAC does so, neigh.c probes the station with the known MAC.
 */
void neigh_kernel_answer(struct neigh *n, struct neigh_entry *e, const uint8_t *mac,
			 bool permanent);

#endif
