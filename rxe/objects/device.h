/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_DEV_H
#define URXE_DEV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "congestion/congestion.h"
#include "objects/qp_state.h"
#include "util/id_map.h"
#include "util/timer.h"

struct gid_entry {
	struct urxe_gid gid;
	bool valid;
	bool v1;
	uint16_t vlan; /* 0 = untagged */
};

#define MCAST_BUCKETS 64

LIST_HEAD(mcast_bucket, mcast_group);

struct mcast {
	struct mcast_bucket buckets[MCAST_BUCKETS]; /* by a hash of the address */
	uint32_t n_groups;
};

/* Buffers of reordered packets that no QP holds, and the number of all buffers. */
struct reorder_pool {
	struct reorder_list free;
	uint32_t n;
};

/* CNPs that the device sent in the interval that began at `since`, ns. */
struct cnp_budget {
	uint64_t since;
	uint32_t spent;
};

struct urxe_dev {
	struct urxe_dev_attr attr;
	uint32_t path_mtu;       /* the longest that the link carries */
	uint32_t window_packets; /* of a QP whose peer is not on this host; */
	uint32_t window_bytes;   /* beside attr.max_packets, which is for all */
	uint64_t now;            /* of the call in progress, or of one that was later */
	struct gid_entry gids[URXE_MAX_GIDS];
	uint32_t address_era; /* changes with them; never 0 */
	uint16_t pkeys[URXE_MAX_PKEYS];
	struct mcast mcast;
	struct idmap qps;
	struct idmap mrs;
	struct idmap mws; /* by the upper 24 bits of their keys */
	struct timers timers;
	struct reorder_pool reorder;
	struct cong_config cong;
	struct cnp_budget cnp;
	TAILQ_HEAD(, urxe_qp) ready; /* QPs that may have something to send */
	LIST_HEAD(, urxe_cq) cqs;
	LIST_HEAD(, urxe_rq) srqs;
	uint32_t direct_era;   /* 0 = no direct transport; else changes with what proofs rest on */
	uint8_t direct_chunks; /* of the table that are taken */
	uint64_t key_seed;
	uint32_t key_count;
	uint32_t qpn_next; /* where the search for a free QPN goes on */
	struct urxe_counters counters;
};

/*
 * The owner's threads look at the clock before they wait for each other: who comes later may have
 * looked before. Time does not go back for that.
 */
static inline void dev_pass_time(struct urxe_dev *dev, uint64_t now)
{
	if (now > dev->now)
		dev->now = now;
}

static inline void dev_count(struct urxe_dev *dev, enum urxe_event event)
{
	dev->counters.event[event]++;
}

static inline void dev_drop(struct urxe_dev *dev, enum urxe_drop drop)
{
	dev->counters.drop[drop]++;
}

/*
 * The addresses or partitions of the device have changed: each connection has to show again, by an
 * acknowledged packet, that its packets reach the peer, before it uses the direct transport.
 */
static inline void dev_reset_direct_proofs(struct urxe_dev *dev)
{
	if (dev->direct_era && !++dev->direct_era)
		dev->direct_era = 1;
}

#endif
