/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device: everything that its QPs, CQs, regions and windows share. */
#ifndef URXE_OBJECTS_DEVICE_H
#define URXE_OBJECTS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "congestion/dcqcn.h"
#include "objects/qp_state.h"
#include "record/recorder.h"
#include "util/id_map.h"
#include "util/timer.h"
#include "wire/gso_run.h"

struct gid_entry {
	struct urxe_gid gid;
	bool valid;
	bool v1;       /* packets from this GID are RoCEv1 */
	uint16_t vlan; /* VLAN ID; 0 = untagged */
};

#define MCAST_BUCKETS 64

LIST_HEAD(mcast_bucket, mcast_group);

struct mcast {
	struct mcast_bucket buckets[MCAST_BUCKETS]; /* by a hash of the address */
	uint32_t n_groups;
};

/* Buffers for out-of-order packets that no QP holds, and the number of all buffers. */
struct out_of_order_pool {
	struct out_of_order_list free;
	uint32_t n;
};

/* CNPs that the device sent in the interval that began at `since`, ns. */
struct cnp_budget {
	uint64_t since;
	uint32_t spent;
};

struct urxe_dev {
	struct urxe_dev_attr attr;
	uint32_t path_mtu;       /* longest path MTU of the link, bytes */
	uint32_t window_packets; /* most packets in flight of a QP whose peer is on another host */
	uint32_t window_bytes;   /* most bytes in flight of a QP whose peer is on another host;
				    attr.max_packets limits all QPs */
	uint32_t referred_packets; /* most unacknowledged packets of a QP that sends references */
	uint32_t unacked_qps;      /* number of RC QPs for which qp_has_packets_on_way is true */
	uint64_t now;              /* latest time that a call has passed, ns */
	struct device_recording *recording; /* NULL: the device neither records nor replays */
	struct gid_entry gids[URXE_MAX_GIDS];
	uint32_t n_gids; /* index of the last valid entry plus 1: each packet is compared with these
			    entries */
	uint16_t pkeys[URXE_MAX_PKEYS];
	struct mcast mcast;
	struct idmap qps;
	uint32_t offloaded; /* number of QPs that the HCA executes */
	struct idmap mrs;
	struct idmap mws;      /* by the upper 24 bits of their keys */
	struct idmap fast_mrs; /* by the upper 24 bits of their keys; `mrs` does not have their
				  regions */
	struct timers timers;
	struct out_of_order_pool out_of_order;
	struct dcqcn_config dcqcn;
	struct cnp_budget cnp;
	bool gso;                    /* urxe_dev_set_gso */
	struct gso_run gso_run;      /* run to which the newest frame of this urxe_output belongs */
	TAILQ_HEAD(, urxe_qp) ready; /* QPs that may have something to send */
	LIST_HEAD(, urxe_qp) referencing; /* QPs whose payload references may be in flight */
	LIST_HEAD(, urxe_cq) cqs;
	LIST_HEAD(, urxe_rq) srqs;
	uint32_t copy_generation; /* changes with gids and pkeys, which voids proofs (struct
				     copy_proof); 0 = no copy transport */
	struct copy_state *copy;  /* NULL = no table */
	const struct urxe_offload_ops *offload; /* of the HCA; NULL: none */
	void *offload_ctx;                      /* of offload's functions */
	bool taking_over; /* between urxe_offload_take_over and its end: the HCA gets no more send
			     requests */
	uint32_t regions_without_hca; /* regions that the HCA lacks: all, if there is no HCA */
	struct urxe_offload_memory hca_memory; /* of the regions that the HCA has */
	uint64_t key_seed;
	uint32_t key_count;
	uint32_t qpn_next; /* offset from attr.qpn_first at which the search for a free QPN
			      continues */
	struct urxe_counters counters;
};

/*
 * Sets the device's time to `now`, if that is later. The owner's threads read the clock before they
 * wait for the owner's lock, so a later call may pass an earlier time. The device's time does not
 * go back.
 */
static inline void dev_pass_time(struct urxe_dev *dev, uint64_t now)
{
	if (now > dev->now)
		dev->now = now;
}

/* Sets dev->n_gids. */
static inline void dev_count_gids(struct urxe_dev *dev)
{
	uint32_t n = URXE_MAX_GIDS;

	while (n && !dev->gids[n - 1].valid)
		n--;
	dev->n_gids = n;
}

static inline void dev_count(struct urxe_dev *dev, enum urxe_event event)
{
	dev->counters.event[event]++;
}

static inline void dev_drop(struct urxe_dev *dev, enum urxe_drop drop)
{
	dev->counters.drop[drop]++;
	if (HAS_RECORDING(dev))
		record_drop(dev, drop);
}

#endif
