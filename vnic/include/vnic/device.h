/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device side of the vNIC: does what a hypervisor's vmxnet3 device does.
 *
 * The device trusts nothing that the driver can write: it copies each index, address, length and
 * generation bit once and checks the copy. A driver that violates the protocol stops its own NIC
 * (VNIC_DEVICE_BROKEN) and no other.
 *
 * One thread at a time may use a device. Functions that return int give 0 or a negative errno
 * value.
 */
#ifndef URXE_VNIC_DEVICE_H
#define URXE_VNIC_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct vnic_device;
struct vnic_dirty_log;

/* A region of the driver's memory. A guest has several, with holes between them. */
struct vnic_region {
	uint64_t addr; /* the driver's address of the region, as in descriptors and DSAL */
	uint64_t size; /* bytes */
	void *memory;
};

#define VNIC_REGIONS 256

struct vnic_device_attr {
	/*
	 * The driver's memory: at most VNIC_REGIONS regions that do not overlap; the table is
	 * copied. A frame's buffer may span several regions; a ring lies in one.
	 * vnic_device_set_regions changes the table later.
	 */
	const struct vnic_region *regions;
	uint32_t region_count;
	/* The register pages, VNIC_BAR_SIZE bytes, that both sides map: BAR0, then BAR1. */
	void *bars;
	uint8_t mac[6]; /* the permanent one */
	/*
	 * Other NICs have this MAC too, and the caller knows which frames belong to this NIC: the
	 * driver cannot change the MAC, and receives every unicast frame that the caller delivers.
	 */
	bool shared_mac;
	uint16_t mtu;
	/* The device marks here each part of the driver's memory that it writes, except what
	 * vnic_device_mark_rings marks: the caller calls that function before it reads the log.
	 * NULL: it marks nothing. */
	struct vnic_dirty_log *log;
	/* Delivers the interrupt of a vector to the driver. Must not call the device. */
	void (*interrupt)(void *ctx, uint32_t vector);
	void *ctx;
};

enum vnic_device_state { VNIC_DEVICE_DOWN, VNIC_DEVICE_ACTIVE, VNIC_DEVICE_BROKEN };

/* X(identifier, printed name, meaning) */
#define VNIC_COUNTER_LIST(X)                                                           \
	X(TX_FRAMES, "tx_frames", "frames taken from the driver")                      \
	X(TX_BYTES, "tx_bytes", "bytes of them")                                       \
	X(TX_BAD, "tx_bad", "transmit descriptors that were malformed")                \
	X(TX_MISFIT, "tx_misfit", "frames too long, or not fit for their offload")     \
	X(RX_FRAMES, "rx_frames", "frames given to the driver")                        \
	X(RX_BYTES, "rx_bytes", "bytes of them")                                       \
	X(RX_NO_BUFFER, "rx_no_buffer", "frames dropped for want of a receive buffer") \
	X(RX_TOO_LONG, "rx_too_long", "frames longer than the receive buffers")        \
	X(RX_BAD, "rx_bad", "receive descriptors that were malformed")                 \
	X(RX_RUNT, "rx_runt", "frames shorter than an Ethernet header")                \
	X(RX_FILTERED, "rx_filtered", "frames that the driver does not want to hear")  \
	X(LINK_DOWN, "link_down",                                                      \
	  "frames while the link was down, or to a driver that forbids DMA")           \
	X(INTERRUPTS, "interrupts", "interrupts delivered")

#define VNIC_COUNTER_ENUM(id, name, text) VNIC_##id,
enum vnic_counter { VNIC_COUNTER_LIST(VNIC_COUNTER_ENUM) VNIC_COUNTER_COUNT };

int vnic_device_create(const struct vnic_device_attr *attr, struct vnic_device **dev);
void vnic_device_destroy(struct vnic_device *dev);
/*
 * Resets the device as after its creation. The driver's VMXNET3_CMD_RESET_DEV keeps more: the
 * revision, the capabilities, the last command's result and the producer registers. The right to
 * access the driver's memory (vnic_device_set_bus_master) stays.
 */
void vnic_device_power_on(struct vnic_device *dev);

/*
 * Replaces the table of the driver's memory. Call it before memory is unmapped, with a table that
 * lacks this memory: the device uses no pointer outside its table. If the new table lacks memory of
 * a ring, or of a frame that vnic_device_tx has returned, the NIC's state becomes
 * VNIC_DEVICE_BROKEN; if it lacks the shared area or a queue's descriptor, where the device would
 * report the error, or the device may not access memory (vnic_device_set_bus_master),
 * VNIC_DEVICE_DOWN. A paused device becomes VNIC_DEVICE_DOWN, and VNIC_DEVICE_BROKEN at
 * vnic_device_resume, if it still has the memory for the report.
 * -EINVAL, -ENOMEM: the table is as before; with a count of 0 it never fails.
 */
int vnic_device_set_regions(struct vnic_device *dev, const struct vnic_region *regions,
			    uint32_t count);

/*
 * The driver withdraws the device's right to access its memory (`on` false), or grants it; the
 * device has the right after creation and vnic_device_restore. A reset by the driver does not
 * change it. Without the right the device reads and writes no memory of the driver: it drops frames
 * to the driver, frames from the driver and interrupts wait, and commands that need memory fail. At
 * the withdrawal, frames that vnic_device_tx has returned, and the rest of a packet that is being
 * segmented, are completed without being sent.
 */
void vnic_device_set_bus_master(struct vnic_device *dev, bool on);

enum vnic_device_state vnic_device_state(const struct vnic_device *dev);
/* The MTU that the driver has set, bytes; 0: the device is not active. */
uint32_t vnic_device_mtu(const struct vnic_device *dev);
/* The MAC that the driver has set, 6 bytes; the permanent one if it has set none. */
const uint8_t *vnic_device_mac(const struct vnic_device *dev);
const uint64_t *vnic_device_counters(const struct vnic_device *dev);

/*
 * Register access; -EINVAL: no such register, or a version that is not offered. TXPROD, RXPROD and
 * IMR are plain words in `bars`, to which a driver that maps them may store directly. After such a
 * store to IMR that unmasks a vector, the driver has to look for missed interrupts itself. If
 * vnic_device_reg_write unmasks a vector, the device raises the vector's pending interrupt.
 */
int vnic_device_reg_write(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t value);
int vnic_device_reg_read(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t *value);

/* A frame in the driver's memory, which may change while it is read. */
struct vnic_tx_frame {
	const uint8_t *data;
	uint32_t len;
};

/* How many transmit queues the driver has set up; 0 while the NIC is not active, or may not access
 * memory. */
uint32_t vnic_device_tx_queues(const struct vnic_device *dev);
/*
 * Returns up to n frames of a transmit queue, oldest first. The same frames come again until
 * vnic_device_tx_done has completed them.
 */
uint32_t vnic_device_tx(struct vnic_device *dev, uint32_t queue, struct vnic_tx_frame *frames,
			uint32_t n);
/* Completes the n oldest frames of a queue. */
void vnic_device_tx_done(struct vnic_device *dev, uint32_t queue, uint32_t n);

/*
 * After the driver's end: the frame that the driver left to be sent (VNIC_REG_LAST_LENGTH), which
 * lies in `bars`. False: the driver left none, or the length is wrong.
 */
bool vnic_device_last_frame(const struct vnic_device *dev, struct vnic_tx_frame *frame);

/* Sets the link's speed in megabits per second; 0: the link is down. Initially 10,000. */
void vnic_device_set_link(struct vnic_device *dev, uint16_t mbps);

/*
 * Copies a frame into the driver's next receive buffers if the driver wants it; a frame that its
 * filters refuse counts as accepted, and as filtered. Frames with the same `flow` go to the same
 * receive queue, in order; a caller passes the destination QPN of a RoCE frame, 0 for other frames.
 * If the driver has enabled RSS, the RSS hash of a frame that has one counts instead. -ENOBUFS: no
 * buffer is free now, and the caller tries again or calls vnic_device_rx_give_up; -EMSGSIZE: longer
 * than the driver's MTU or buffers allow, dropped; -EINVAL: shorter than an Ethernet header;
 * -ENETDOWN: the NIC is not active or may not access memory, the link is down, or a malformed
 * descriptor has stopped the NIC.
 */
int vnic_device_rx(struct vnic_device *dev, uint32_t flow, const uint8_t *data, uint32_t len);
/*
 * As vnic_device_rx, for a frame in n parts, none of them empty. The first parts may be copies that
 * the caller has checked.
 */
int vnic_device_rxv(struct vnic_device *dev, uint32_t flow, const struct iovec *parts, uint32_t n);
/*
 * Right after -ENOBUFS: the caller drops the frame, which is counted. `stalled`: the frame has
 * waited long, so its receive queue counts as stalled until the queue takes a frame. The device
 * only remembers that: callers drop the frames of a stalled queue at once.
 */
void vnic_device_rx_give_up(struct vnic_device *dev, bool stalled);
/* Right after -ENOBUFS: whether the frame's receive queue is stalled. */
bool vnic_device_rx_is_stalled(const struct vnic_device *dev);

/* Whether the driver wants any multicast frames, by its receive mode. */
bool vnic_device_wants_multicast(const struct vnic_device *dev);
/* Whether the driver wants broadcast frames, by its receive mode. */
bool vnic_device_wants_broadcast(const struct vnic_device *dev);

/* Raises the interrupts for frames received and completed since the last call, unless masked. */
void vnic_device_flush(struct vnic_device *dev);

/*
 * The device's thread calls this with true before it sleeps, and then looks for work once more. A
 * driver rings the doorbell only if the device sleeps.
 */
void vnic_device_set_asleep(struct vnic_device *dev, bool asleep);

/*
 * While the caller looks at the transmit queues anyway, a stock driver need not write TXPROD, which
 * traps: `polling` sets vmxnet3's threshold of deferred frames so high that the driver does not
 * write it. Before the caller sleeps, it sets `polling` to false and looks once more. A stock
 * driver has no fence between its descriptor and its look at the threshold. So the caller looks
 * again within a short time, when the driver's store has certainly become visible. Each activation
 * begins without `polling`.
 */
void vnic_device_set_polling(struct vnic_device *dev, bool polling);

/* Marks, in attr.log, the shared area, the queues' descriptors and completion rings: the device
 * writes to them all the time. Receive buffers are marked when they are written. */
void vnic_device_mark_rings(const struct vnic_device *dev);

/* --- Live migration of a virtual machine. The queues' statistics (UPT1) migrate; the counters of
 * vnic_device_counters stay those of the process. */

/*
 * The caller has stopped the guest's processors, and calls vnic_device_save or vnic_device_resume
 * next. Frames that vnic_device_tx has returned, and the rest of a packet that is being segmented,
 * are completed without being sent: the caller sends what it can before.
 */
void vnic_device_pause(struct vnic_device *dev);
/*
 * The device goes on, after vnic_device_pause or vnic_device_restore: raises all interrupts that
 * are not masked, and tells the driver if the link has changed meanwhile. After vnic_device_restore
 * a vector is masked only if the driver has masked it, not by an earlier interrupt.
 */
void vnic_device_resume(struct vnic_device *dev);
/*
 * Writes the state of a paused device, without the driver's memory. The caller frees *stream with
 * free(3). -ENOMEM.
 */
int vnic_device_save(struct vnic_device *dev, uint8_t **stream, size_t *length);
/*
 * Makes the device that of the stream. The driver's memory has the same addresses as where the
 * device was saved; the device does not access it before vnic_device_resume. On error the device is
 * as after a reset. -EBADMSG: the stream is truncated or damaged, or its values contradict each
 * other; -EPROTONOSUPPORT: a later version of urxe has written it; -EINVAL: another permanent MAC,
 * or a longer MTU than this device's; -EFAULT: no memory where a ring, the shared area or a queue's
 * descriptor lies; -ENOMEM.
 */
int vnic_device_restore(struct vnic_device *dev, const uint8_t *stream, size_t length);

#endif
