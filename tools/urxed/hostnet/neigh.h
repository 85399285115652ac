/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Neighbours: which MAC has an address (ARP, RFC 826; ND, RFC 4861).
 *
 * Sans-IO: frames and the time come in, frames and answers go out through callbacks. From an
 * address that the kernel has too, the kernel's routes and neighbours lead (route.h). From other
 * addresses, destinations outside the subnets of the host's addresses are unreachable.
 *
 * Any station on a link can claim any address. So a known MAC is replaced only when the station
 * that has it does not answer probes any more (0.3 s), and --fdb can pin the MAC of an address.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_H
#define URXE_URXED_HOSTNET_NEIGH_H

#include <stdint.h>

#include "urxed/hostnet/address_pin.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh_table.h"
#include "urxed/session/user_counts.h"

#define NEIGH_TRIES       3
#define NEIGH_TRY_NS      1000000000ull /* between tries (RFC 4861, 10: RETRANS_TIMER) */
#define NEIGH_PROBES      3
#define NEIGH_PROBE_NS    100000000ull  /* between probes of the known MAC */
#define NEIGH_QUIET_NS    1000000000ull /* after a claim was refuted, until the next is looked at */
#define NEIGH_LIFE_NS     60000000000ull /* before a known neighbour is asked again */
#define NEIGH_FRAME_ROOM  128            /* bytes; none of the daemon's frames is longer */
#define NEIGH_WAITERS_MAX 4096           /* of all users; a user has a quota (quota.h) */

/* X(identifier, printed name, meaning) */
#define NEIGH_COUNTER_LIST(X)                                                              \
	X(DISPLACED, "neigh_displaced",                                                    \
	  "address resolutions given up for newer ones of the same user or of neighbours") \
	X(REFUTED, "neigh_refuted",                                                        \
	  "claims of another MAC for an address whose known MAC answered a probe")         \
	X(MOVED, "neigh_moved", "addresses whose MAC changed because the known MAC was silent")

#define NEIGH_COUNTER_ENUM(id, name, text) NEIGH_COUNT_##id,
enum neigh_counter { NEIGH_COUNTER_LIST(NEIGH_COUNTER_ENUM) NEIGH_COUNTER_COUNT };
const char *neigh_counter_name(enum neigh_counter counter);

enum neigh_asker { NEIGH_FOR_SESSION, NEIGH_FOR_GSI, NEIGH_FOR_CMA };

/* Somebody who waits for a next hop. Its owner keeps it in place until answered or cancelled. */
struct neigh_waiter {
	LIST_ENTRY(neigh_waiter) link;
	bool waits;
	uint8_t asker; /* enum neigh_asker, whom the answer is for; set once it waits */
	uid_t user;
	uint8_t dgid[16];  /* the destination */
	uint16_t vlan;     /* in which it is */
	uint8_t ip[16];    /* of the next hop */
	uint8_t hop_limit; /* by the route to the destination */
	int ifindex;       /* the kernel asks there; 0 = the daemon does */
};

struct neigh_ops {
	void (*send)(void *ctx, int uplink, const uint8_t *frame, uint32_t len);
	/* mac of an uplink, which the daemon's ARP and ND frames carry */
	const uint8_t *(*mac)(void *ctx, int uplink);
	/* status 0, or -EHOSTUNREACH or -ENETUNREACH and hop is NULL */
	void (*answer)(void *ctx, struct neigh_waiter *w, int status,
		       const struct vnic_next_hop *hop);
};

struct route;

struct neigh {
	const struct host *host;
	struct route *route; /* of the kernel; NULL = there is none to ask */
	/*
	 * Uplinks that are virtual machines, as a bit mask. The kernel cannot find these; so if
	 * there are any, the daemon itself resolves what is on the link.
	 */
	uint32_t vm_mask;
	const struct neigh_ops *ops;
	void *ctx;
	uint64_t now;                  /* ns; of the last call */
	uint64_t next_due;             /* ns; no entry is due before */
	struct user_counts waiting;    /* waiters of each user */
	struct neigh_waiter_list lost; /* their entries were displaced; neigh_tick answers them */
	struct address_pins pins;
	uint64_t counters[NEIGH_COUNTER_COUNT];
	struct neigh_table table;
};

void neigh_init(struct neigh *n, const struct host *host, const struct neigh_ops *ops, void *ctx);
/* All waiters have been answered or cancelled. A zeroed structure is accepted. */
void neigh_fini(struct neigh *n);

/*
 * The next hop to dgid, seen from entry sgid_index of the GID table, for a user or NEIGH_PEERS.
 * -EINPROGRESS: w waits, and ops->answer will come for it after this call. -ENETUNREACH,
 * -EHOSTUNREACH, -EINVAL: there is none. -ENOSPC: the user waits for too many.
 */
int neigh_resolve(struct neigh *n, uint64_t now, uid_t user, uint8_t sgid_index,
		  const uint8_t dgid[16], struct neigh_waiter *w, struct vnic_next_hop *hop);

/* The host's addresses have changed: what was asked for one that has gone is not reached. */
void neigh_host_changed(struct neigh *n);
/* w waits no more; nothing if it does not wait. */
void neigh_cancel(struct neigh *n, struct neigh_waiter *w);

/* Takes an ARP or ND frame that came in on an uplink: learns from it, answers it. */
void neigh_input(struct neigh *n, uint64_t now, int uplink, const uint8_t *frame, uint32_t len);

/* Does what is due; returns when it wants to be called next, UINT64_MAX = never. */
uint64_t neigh_tick(struct neigh *n, uint64_t now);
/* When neigh_tick has to be called next: neigh_resolve may have made that earlier. */
uint64_t neigh_deadline(const struct neigh *n);

/*
 * True: address resolution has found this MAC for the address, or for the router that leads to it.
 * A station that invents its source addresses is not known.
 */
bool neigh_knows(struct neigh *n, uint64_t now, const uint8_t ip[16], uint16_t vlan,
		 const uint8_t mac[ETHER_MAC_LEN]);
/* False: the ARP or ND frame claims a pinned address for another MAC. */
bool neigh_claim_allowed(const struct neigh *n, const uint8_t *frame, uint32_t len);

/* --- For route.c. */
/* The kernel has come to an end with an entry: mac, or NULL if the neighbour is not reached. */
void neigh_kernel_answer(struct neigh *n, struct neigh_entry *e, const uint8_t *mac);

#endif
