/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device's private state, which the driver cannot reach. */
#ifndef URXE_VNIC_DEVICE_NIC_H
#define URXE_VNIC_DEVICE_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/device.h>
#include <vnic/dirty_log.h>
#include <vnic/frame.h>
#include <vnic/regs.h>

#include "cursor.h"
#include "headers.h"
#include "rss.h"
#include "tso.h"

/*
 * The device's revision until the driver selects one: the newest, which has all features of the
 * older ones. A Linux guest that resumes from hibernation on a new device does not select again,
 * and goes on with the revision that it selected earlier.
 */
#define VNIC_UNSELECTED_REVISION VMXNET3_REV_9

/* Frames that vnic_device_tx returns at most: more than any burst of the switch. */
#define VNIC_TX_AHEAD 64

/*
 * vmxnet3's txThreshold while the device does not poll: each frame is worth a doorbell at once.
 * With 0, DPDK's driver would ring without a frame, too.
 */
#define VNIC_TX_THRESHOLD 1u

/* A checked frame that waits for vnic_device_tx_done. */
struct vnic_tx_pending {
	const uint8_t *data;
	uint32_t len;
	uint16_t eop;    /* index of the frame's last descriptor */
	bool completion; /* the driver requested a completion */
	bool slot;       /* the data lie in a slot, which the frame's completion frees */
	bool tso;
};

/* The most frames of a transmit queue that the device has assembled and not completed: frames of
 * several pieces, or with an offload. */
#define VNIC_TX_SLOTS 16
/*
 * The largest packet to be segmented: an IP packet, and the maximum that VMXNET3_TXD_HLEN allows
 * for headers.
 */
#define VNIC_TSO_MAX (UINT32_C(65536) + VMXNET3_TXD_HLEN)

struct vnic_device_txq {
	struct vmxnet3_tx_queue_desc *shared;
	struct vmxnet3_tx_desc *ring;
	struct vmxnet3_tx_comp *comp;
	struct vnic_cursor next;      /* the first unread descriptor */
	struct vnic_cursor comp_next; /* the next completion to write */
	struct vnic_tx_pending pending[VNIC_TX_AHEAD];
	uint32_t first, count; /* part of `pending`, a ring */
	uint8_t *slots;        /* room for VNIC_TX_SLOTS frames, used in turn */
	uint32_t slot_first, slot_count;
	uint8_t *packet; /* the packet that is being segmented: VNIC_TSO_MAX bytes */
	struct vnic_tso tso;
	bool segmenting; /* more segments of the packet follow */
	bool tso_completion, tso_tag;
	uint16_t tso_tci, tso_eop;
	uint8_t vector;
	uint64_t stats[UPT1_TX_STATS];
};

struct vnic_device_rxq {
	uint32_t number;
	struct vmxnet3_rx_queue_desc *shared;
	struct vmxnet3_rx_desc *ring[2];
	struct vmxnet3_rx_comp *comp;
	uint8_t *data_ring; /* a small buffer for each descriptor of ring 0; NULL = no data ring */
	uint32_t data_size; /* bytes of each of these buffers */
	struct vnic_cursor next[2];
	struct vnic_cursor comp_next;
	bool wants_rxprod; /* update_prod is set: the driver writes RXPROD when it posts a buffer */
	bool stalled;      /* a frame has waited long for a buffer; a delivered frame clears it */
	uint8_t vector;
	uint64_t stats[UPT1_RX_STATS];
};

/*
 * A driver with more groups receives all multicast frames, as vmxnet3 drivers request by
 * themselves.
 */
#define VNIC_FILTER_GROUPS 256

/* The receive filter of the driver's last commands. */
struct vnic_device_filter {
	uint32_t mode; /* VMXNET3_RXM_* */
	uint32_t group_count;
	uint8_t groups[VNIC_FILTER_GROUPS][6];
	uint32_t vlan[VMXNET3_VFT_SIZE];
};

/* An error of a queue that the driver learns at vnic_device_resume. */
struct vnic_device_error {
	struct vmxnet3_queue_status *status; /* of the queue; NULL = no error */
	uint32_t event;                      /* VMXNET3_ECR_* */
	uint32_t error;                      /* VMXNET3_ERR_* */
};

/* The members that each frame needs stand first, side by side. */
struct vnic_device {
	enum vnic_device_state state;
	uint32_t features;    /* UPT1_F_*; with UPT1_F_RSS `rss` is valid */
	uint32_t frame_max;   /* see vnic_device_set_mtu */
	uint16_t link;        /* Mb/s, 0 = link down */
	uint16_t driver_link; /* that the driver knows: as last told, or read at activation */
	bool auto_mask;
	bool no_master; /* the driver has cleared the bus master bit: no access to its memory */
	bool paused;    /* between vnic_device_pause or _restore and vnic_device_resume */
	uint32_t tx_queues, rx_queues;
	uint32_t interrupts; /* bit n: vector n has an interrupt to raise */
	uint32_t missed; /* bit n: vector n was masked, or no_master, when its interrupt was due */
	uint32_t auto_masked; /* bit n: an interrupt masked vector n, and the driver has not
				 written IMR since */
	struct vnic_device_attr attr;
	struct vnic_region *regions;
	uint32_t region_count, region_room;
	struct vnic_device_error due_error;
	uint64_t counters[VNIC_COUNTER_COUNT];
	struct vnic_device_filter filter;
	struct vnic_device_txq tx[VMXNET3_MAX_TX_QUEUES];
	struct vnic_device_rxq rx[VMXNET3_MAX_RX_QUEUES];
	struct vnic_device_rxq *refused_by; /* the queue of the last -ENOBUFS of vnic_device_rxv */
	uint8_t *buffers;  /* memory for the queues' slots and packets, and `whole` */
	uint8_t *whole;    /* a received frame of several parts, assembled for inspection */
	uint32_t mtu;      /* of the active driver */
	uint32_t revision; /* the revision that the driver selected, or VNIC_UNSELECTED_REVISION */
	uint32_t shared_low, shared_high; /* DSAL, DSAH */
	uint32_t result;                  /* result of the last command */
	uint32_t mac_low;                 /* value of MACL, until MACH is written */
	uint32_t capabilities;            /* VMXNET3_CAP_* that the driver got */
	uint32_t rss_fields;              /* VMXNET3_RSS_FIELDS_* */
	struct vnic_rss rss;
	uint8_t mac[6];
	uint8_t vectors;
	uint8_t event_vector;
	struct vmxnet3_coalesce_scheme coalesce;
	struct vmxnet3_driver_shared *shared;
};

/* The first bytes of a MAC as the register MACL shows them. */
static inline uint32_t vnic_mac_low(const uint8_t mac[6])
{
	return mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24;
}

static inline uint32_t vnic_mac_high(const uint8_t mac[6])
{
	return mac[4] | (uint32_t)mac[5] << 8;
}

/*
 * The region that contains an address, and the offset in it; NULL = none. No region wraps
 * (vnic_device_set_regions), so one comparison checks both ends.
 */
static inline const struct vnic_region *vnic_region_find(const struct vnic_device *dev,
							 uint64_t addr, uint64_t *offset)
{
	for (uint32_t i = 0; i < dev->region_count; i++) {
		const struct vnic_region *region = &dev->regions[i];

		*offset = addr - region->addr;
		if (*offset < region->size)
			return region;
	}
	return NULL;
}

/* `size` bytes at `addr` of the driver's memory; NULL: they do not lie in one region. */
static inline void *vnic_region_memory(const struct vnic_device *dev, uint64_t addr, uint64_t size)
{
	uint64_t offset;
	const struct vnic_region *region = vnic_region_find(dev, addr, &offset);

	if (!region || size > region->size - offset)
		return NULL;
	return (uint8_t *)region->memory + offset;
}

/* Bytes of a transmit queue's slots; vnic_device_buffers_size adds the packet behind them. */
static inline size_t vnic_device_slots_size(const struct vnic_device *dev)
{
	return (size_t)VNIC_TX_SLOTS * VNIC_FRAME_MAX(dev->attr.mtu);
}

static inline size_t vnic_device_buffers_size(const struct vnic_device *dev)
{
	return vnic_device_slots_size(dev) + VNIC_TSO_MAX;
}

/* Whether `size` bytes at `addr` are the driver's memory, possibly in several regions. */
bool vnic_region_covers(const struct vnic_device *dev, uint64_t addr, uint64_t size);
/* Copy from and to memory for which vnic_region_covers returned true. */
void vnic_region_read(const struct vnic_device *dev, uint64_t addr, uint8_t *to, uint64_t size);
void vnic_region_write(const struct vnic_device *dev, uint64_t addr, const uint8_t *from,
		       uint64_t size);

/* Stops the NIC, and sets the registers to their values after creation, except the revision, the
 * capabilities, the last command's result and the producer registers. */
void vnic_device_reset(struct vnic_device *dev);
/* Reads the driver's configuration and activates the NIC. False: the configuration is invalid. */
bool vnic_device_activate(struct vnic_device *dev);
/* Sets the driver's MTU, and the longest frame from and to the driver. */
void vnic_device_set_mtu(struct vnic_device *dev, uint32_t mtu);
/* Sets the NIC down, without queues. Frames that vnic_device_tx has returned are not completed:
 * vnic_device_tx_done then does nothing. */
void vnic_device_stop(struct vnic_device *dev);
/* Completes, unsent, the frames that vnic_device_tx has returned and the rest of the packet that is
 * being segmented. Does not read the ring, to which the driver may post more at any time. */
void vnic_device_tx_discard(struct vnic_device *dev, uint32_t queue);
/*
 * Tells the driver of an active device if the link is not the one that the driver knows. The caller
 * has checked that the device may access memory.
 */
void vnic_device_tell_link(struct vnic_device *dev);
/*
 * Stops a queue on which the driver has violated the protocol, with `error` in its status, and with
 * it the NIC until the driver resets it. Without access to memory, or paused, the NIC goes down
 * instead.
 * `event`: VMXNET3_ECR_TQERR or _RQERR.
 */
void vnic_device_break(struct vnic_device *dev, uint32_t event, struct vmxnet3_queue_status *status,
		       uint32_t error);
/* Executes a command that the driver wrote to CMD. Returns the result, for a read of CMD. */
uint32_t vnic_device_command(struct vnic_device *dev, uint32_t cmd);

/* Copy the parts of the shared area whose change the driver reports by a command. */
void vnic_device_update_mode(struct vnic_device *dev);
/* False: the table of groups is not in the driver's memory; then nothing changes. */
bool vnic_device_update_groups(struct vnic_device *dev);
void vnic_device_update_vlans(struct vnic_device *dev);
/* False: the driver requests RSS without a valid configuration; then nothing changes. */
bool vnic_device_update_features(struct vnic_device *dev);
/* Whether the driver wants a frame; the frame has an Ethernet header at least. */
bool vnic_device_wants(const struct vnic_device *dev, const uint8_t *data, uint32_t len);

/*
 * Checks the checksums of a frame in private memory, and sets *bits to the results for the
 * completion: VMXNET3_RCD_V4, _IPC, _TUC and so on. False: the frame is not a complete IP packet,
 * or has more than `tags` VLAN tags.
 */
bool vnic_rx_csum(const uint8_t *frame, uint32_t len, uint32_t tags, uint32_t *bits);

/* The indices of the counters used here are the same for both kinds of queues. */
static_assert((int)UPT1_TX_UCAST == (int)UPT1_RX_UCAST, "");
static_assert((int)UPT1_TX_MCAST == (int)UPT1_RX_MCAST, "");
static_assert((int)UPT1_TX_BCAST == (int)UPT1_RX_BCAST, "");

/* Counts a frame and its bytes by its kind of destination. */
static inline void vnic_device_count(uint64_t stats[], const uint8_t *mac, uint32_t len)
{
	uint32_t kind = UPT1_TX_UCAST;

	if (mac[0] & 1)
		kind = (mac[0] & mac[1] & mac[2] & mac[3] & mac[4] & mac[5]) == 0xff
			       ? UPT1_TX_BCAST
			       : UPT1_TX_MCAST;
	stats[kind]++;
	stats[kind + 1] += len;
}

/* Writes the queues' statistics; nothing without queues, or without access to memory. */
void vnic_device_write_stats(struct vnic_device *dev);

/* Marks a vector, for which vnic_device_flush then raises an interrupt. */
void vnic_device_mark_interrupt(struct vnic_device *dev, uint8_t vector);
/* Reports an event, VMXNET3_ECR_*, to the driver at once. */
void vnic_device_raise_event(struct vnic_device *dev, uint32_t event);
/* The driver wrote `value` to the vector's IMR. 0 unmasks the vector, and raises its interrupt if
 * one was due meanwhile. */
void vnic_device_mask_written(struct vnic_device *dev, uint32_t vector, uint32_t value);
/* Masks all vectors, and forgets interrupts that were to be raised. */
void vnic_device_mask_all(struct vnic_device *dev);

#endif
