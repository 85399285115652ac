/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inbox: a receive queue of one process into which other processes of the
 * same user put frames themselves, without the daemon.
 *
 * It is vmxnet3's receive queue boiled down: a ring of slots, each a completion with
 * its generation bit and the frame behind it, and the place up to which the receiver
 * has given slots back. The device side has many hands: each sender, under a lock word
 * in the memory that all share. What the next sender has to know stands there too, so that it
 * goes on where any other stopped, was killed or was left asleep.
 *
 * Nobody trusts anybody. The receiver checks completions as a driver does and
 * gives up an inbox that breaks the contract; of what a sender reads no place to
 * write to follows that is not a slot. Who can write to an inbox can spoil its frames, and no more.
 *
 * One thread at a time may use a receiver's or a sender's end. Functions that
 * return int give 0 or a negative errno value.
 */
#ifndef URXE_VNIC_INBOX_H
#define URXE_VNIC_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/frame.h>

/*
 * The descriptors of an inbox: sealed memory that senders write, memory that only the receiver
 * writes, and the eventfd that is the inbox's interrupt.
 */
enum vnic_inbox_fd { VNIC_INBOX_MEMORY, VNIC_INBOX_PUBLISHED, VNIC_INBOX_WAKE, VNIC_INBOX_FDS };

/* Frames that an inbox holds. */
#define VNIC_INBOX_FRAMES 512

/* Bytes that the receiver publishes to its senders for purposes of its own; zero at first. */
#define VNIC_INBOX_PUBLISHED_SIZE (2640u * 1024)

/* X(identifier, printed name, meaning) */
#define VNIC_DIRECT_LIST(X)                                                                    \
	X(SENT, "direct_sent", "frames put straight into another process's inbox")             \
	X(REFERRED, "direct_referred", "of these, those with a reference to their payload")    \
	X(RECEIVED, "direct_received", "frames taken from the inbox")                          \
	X(PULLED, "direct_pulled", "of these, those with a reference to their payload")        \
	X(UNREACHED, "direct_unreached",                                                       \
	  "frames dropped: the process of their payload reference is not known")               \
	X(BUSY, "direct_busy", "frames that went by the switch: another sender had the lock")  \
	X(FULL, "direct_full", "frames that went by the switch: the inbox stayed full")        \
	X(CLOSED, "direct_closed", "inboxes that were closed when a frame was to go there")    \
	X(OFF, "direct_off", "frames that went by the switch: the daemon wants to see them")   \
	X(LOST, "direct_lost",                                                                 \
	  "frames for the switch that were lost: it had taken none for 100 ms, or they had a " \
	  "payload reference")                                                                 \
	X(BROKEN, "direct_broken", "own inboxes given up: a sender broke the contract")        \
	X(LOCK_WAITS, "lock_waits", "times that a thread slept for the lock of the engine")    \
	X(LOCK_WAIT_US, "lock_wait_us", "microseconds of these waits")

#define VNIC_DIRECT_ENUM(id, name, text) VNIC_DIRECT_##id,
enum vnic_direct_counter { VNIC_DIRECT_LIST(VNIC_DIRECT_ENUM) VNIC_DIRECT_COUNT };
const char *vnic_direct_counter_name(enum vnic_direct_counter counter);

/* --- The receiver. */

struct vnic_inbox;

/* An empty inbox, its interrupt masked, for the frames of a NIC with that MTU. */
int vnic_inbox_create(uint16_t mtu, struct vnic_inbox **inbox);
/* Tells all senders that it is closed, then frees it. NULL is allowed. */
void vnic_inbox_destroy(struct vnic_inbox *inbox);
/* Forgets an inbox inherited through fork, without a word to the senders. NULL is allowed. */
void vnic_inbox_abandon(struct vnic_inbox *inbox);
/*
 * In a forked child: replaces the memory that senders see by zeroed private memory, until
 * vnic_inbox_abandon. NULL is allowed.
 */
void vnic_inbox_isolate(const struct vnic_inbox *inbox);
/* For others; they stay the inbox's own. */
void vnic_inbox_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS]);

/*
 * Has the kernel give it all its memory now, which takes a millisecond or two: else each slot waits
 * for its page at its first frame, at either end. Any thread.
 */
void vnic_inbox_populate(const struct vnic_inbox *inbox);

void *vnic_inbox_published(const struct vnic_inbox *inbox);

/*
 * As vnic_driver_rx and vnic_driver_rx_release. Any process that can write to the inbox can forge
 * a frame's reference. A few buffers (15 at most)
 * may be kept back until more are released, a call of vnic_inbox_rx has given as many frames as
 * were asked for, or the interrupt is unmasked.
 */
uint32_t vnic_inbox_rx(struct vnic_inbox *inbox, struct vnic_frame *frames, uint32_t n);
void vnic_inbox_rx_release(struct vnic_inbox *inbox, uint32_t n);

/* The interrupt is an eventfd, which senders write to while the interrupt is unmasked. */
int vnic_inbox_irq_fd(const struct vnic_inbox *inbox);
void vnic_inbox_irq_mask(struct vnic_inbox *inbox);
/* True: frames wait already, and may raise no interrupt. */
bool vnic_inbox_irq_unmask(struct vnic_inbox *inbox);

/* A sender completed what it must not: nothing is received any more, and all senders were told. */
bool vnic_inbox_broken(const struct vnic_inbox *inbox);

/* --- A sender. */

struct vnic_outbox;

enum vnic_outbox_status {
	VNIC_OUTBOX_TAKEN,
	VNIC_OUTBOX_BUSY,   /* another sender has the lock, and kept it for some hundred ns */
	VNIC_OUTBOX_FULL,   /* the receiver has not given back a buffer */
	VNIC_OUTBOX_CLOSED, /* for good */
};

/*
 * `self` is the number by which the daemon knows this process: its lease's first
 * QPN >> 12. The descriptors are the outbox's from now on, on failure too.
 * -EPERM or -EINVAL: no such memory.
 */
int vnic_outbox_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu, uint32_t self,
		     struct vnic_outbox **outbox);
/* Whether a send would say so. */
bool vnic_outbox_closed(const struct vnic_outbox *outbox);
void vnic_outbox_close(struct vnic_outbox *outbox);
/* In a forked child: replaces the receiver's memory by zeroed private memory. */
void vnic_outbox_isolate(const struct vnic_outbox *outbox);
const void *vnic_outbox_published(const struct vnic_outbox *outbox);

/*
 * Copies frames into the receiver's buffers, in order, and wakes it. Returns how
 * many it took; *status says why not all. It does not wait.
 */
uint32_t vnic_outbox_send(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n,
			  enum vnic_outbox_status *status);
/* Wakes the receiver as a frame would, if it sleeps. */
void vnic_outbox_wake(const struct vnic_outbox *outbox);

/*
 * Without a copy: the buffers that come next, up to n, for frames to be written to. 0: another
 * sender has the lock, there is no room, or the inbox is closed. Else the lock is held until the
 * commit of the first n of them (0: of none), in their order and with their lengths, which wakes
 * the receiver. The other side can change what was written, at any time.
 *
 * A frame with a payload reference needs sizeof(struct vnic_reference) bytes of its room for it.
 */
uint32_t vnic_outbox_reserve(struct vnic_outbox *outbox, struct vnic_frame *frames, uint32_t n);
void vnic_outbox_commit(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n);

/* --- The daemon, which introduces senders and cleans up after those that died. */

struct vnic_inbox_broker;

/* Maps another process's inbox. The descriptors are the broker's from now on, on failure too. */
int vnic_inbox_broker_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu,
			   struct vnic_inbox_broker **broker);
/* Lets go of it; receiver and senders go on. NULL is allowed. */
void vnic_inbox_broker_close(struct vnic_inbox_broker *broker);
/* The receiver has gone: no sender is to put anything there any more. */
void vnic_inbox_broker_revoke(struct vnic_inbox_broker *broker);
/* To be handed on; they stay the broker's. */
void vnic_inbox_broker_fds(const struct vnic_inbox_broker *broker, int fds[VNIC_INBOX_FDS]);
/* Who has the lock: a sender's `self`; 0 = nobody. */
uint32_t vnic_inbox_broker_holder(const struct vnic_inbox_broker *broker);
/* That sender has died: frees the lock, where it had it. */
void vnic_inbox_broker_unlock(struct vnic_inbox_broker *broker, uint32_t holder);

#endif
