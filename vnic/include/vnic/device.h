/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device side of the vNIC: what a hypervisor's vmxnet3 does.
 *
 * It trusts nothing that the driver can write: every index, address, length and
 * generation bit is copied once and checked. A driver that breaks the contract
 * stops its own NIC (VNIC_DEVICE_BROKEN) and no one else's. One thread at a time
 * may use a device. Functions that return int give 0 or a negative errno value.
 */
#ifndef URXE_VNIC_DEVICE_H
#define URXE_VNIC_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct vnic_device;

/* A piece of the driver's memory, as a guest has several with holes between them. */
struct vnic_region {
	uint64_t addr; /* where the driver sees it: what descriptors and DSAL name */
	uint64_t size; /* bytes */
	void *memory;
};

#define VNIC_REGIONS 32

struct vnic_device_attr {
	/*
	 * The driver's memory, at most VNIC_REGIONS that do not overlap; the table is
	 * copied. A frame's buffer may reach over several; a ring lies in one.
	 */
	const struct vnic_region *regions;
	uint32_t region_count;
	/* The register pages, VNIC_BAR_SIZE bytes, that both sides map: BAR0, then BAR1. */
	void *bars;
	uint8_t mac[6]; /* the permanent one */
	/*
	 * Other NICs have this MAC too, and the owner knows whose a frame is: the driver
	 * can take no other MAC, and hears every unicast frame that it is given.
	 */
	bool shared_mac;
	uint16_t mtu;
	/* Delivers the interrupt of a vector to the driver. */
	void (*interrupt)(void *ctx, uint32_t vector);
	void *ctx;
};

enum vnic_device_state { VNIC_DEVICE_DOWN, VNIC_DEVICE_ACTIVE, VNIC_DEVICE_BROKEN };

/* X(identifier, printed name, meaning) */
#define VNIC_COUNTER_LIST(X)                                                           \
	X(TX_FRAMES, "tx_frames", "frames taken from the driver")                      \
	X(TX_BYTES, "tx_bytes", "bytes of them")                                       \
	X(TX_BAD, "tx_bad", "transmit descriptors that were malformed")                \
	X(TX_MISFIT, "tx_misfit", "frames not fit for the offload that was asked for") \
	X(RX_FRAMES, "rx_frames", "frames given to the driver")                        \
	X(RX_BYTES, "rx_bytes", "bytes of them")                                       \
	X(RX_NO_BUFFER, "rx_no_buffer", "frames refused for want of a receive buffer") \
	X(RX_TOO_LONG, "rx_too_long", "frames longer than the receive buffers")        \
	X(RX_BAD, "rx_bad", "receive descriptors that were malformed")                 \
	X(RX_RUNT, "rx_runt", "frames shorter than an Ethernet header")                \
	X(RX_FILTERED, "rx_filtered", "frames that the driver does not want to hear")  \
	X(LINK_DOWN, "link_down", "frames either way while the link was down")         \
	X(INTERRUPTS, "interrupts", "interrupts delivered")

#define VNIC_COUNTER_ENUM(id, name, text) VNIC_##id,
enum vnic_counter { VNIC_COUNTER_LIST(VNIC_COUNTER_ENUM) VNIC_COUNTER_COUNT };
const char *vnic_counter_name(enum vnic_counter counter);

int vnic_device_create(const struct vnic_device_attr *attr, struct vnic_device **dev);
void vnic_device_destroy(struct vnic_device *dev);

enum vnic_device_state vnic_device_state(const struct vnic_device *dev);
const uint64_t *vnic_device_counters(const struct vnic_device *dev);

/*
 * Register access, -EINVAL where there is no such register. TXPROD, RXPROD and IMR
 * are plain words in `bars`, which a driver that maps them may store to by itself;
 * one that unmasks a vector so has to look for what it missed, whereas a vector
 * that is unmasked here delivers what it owes.
 */
int vnic_device_reg_write(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t value);
int vnic_device_reg_read(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t *value);

/* A frame in the driver's memory, which may change under the reader. */
struct vnic_tx_frame {
	const uint8_t *data;
	uint32_t len;
};

/* How many transmit queues the driver has set up; 0 while the NIC is not active. */
uint32_t vnic_device_tx_queues(const struct vnic_device *dev);
/*
 * Up to n frames that the driver wants sent from a queue, oldest first, without
 * taking them: the same come again until vnic_device_tx_done has completed them.
 */
uint32_t vnic_device_tx(struct vnic_device *dev, uint32_t queue, struct vnic_tx_frame *frames,
			uint32_t n);
/* Completes the n oldest frames of a queue. */
void vnic_device_tx_done(struct vnic_device *dev, uint32_t queue, uint32_t n);

/* Speed in megabits per second, 0: the link is down. At first it is up at 10,000. */
void vnic_device_set_link(struct vnic_device *dev, uint16_t mbps);

/*
 * Copies a frame into the driver's next receive buffers, if the driver wants it:
 * what its filters refuse is taken too, and counted. Frames of one flow go to
 * one of its receive queues, and stay in order: for RoCE the flow is the
 * destination QPN; 0 is what belongs to none. -ENOBUFS: no buffer is free now;
 * -EMSGSIZE: too long for them, dropped; -EINVAL: shorter than an Ethernet header;
 * -ENETDOWN: not active, or the link is down.
 */
int vnic_device_rx(struct vnic_device *dev, uint32_t flow, const uint8_t *data, uint32_t len);
/*
 * The same for a frame in n parts: those that were copied and checked, and the
 * rest where it was. No part may be empty.
 */
int vnic_device_rxv(struct vnic_device *dev, uint32_t flow, const struct iovec *parts, uint32_t n);

/* Whether the driver wants any multicast frames, by its receive mode. */
bool vnic_device_wants_multicast(const struct vnic_device *dev);

/* Interrupts the driver for what was received and completed since the last call, unless masked. */
void vnic_device_flush(struct vnic_device *dev);

/*
 * Before the device's thread sleeps it says so (true), and looks once more for
 * work; a driver wakes only a device that sleeps.
 */
void vnic_device_set_asleep(struct vnic_device *dev, bool asleep);

#endif
