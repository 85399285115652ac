/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inbox: a receive queue of one process, into which other processes of the same user write
 * frames themselves, without the daemon.
 *
 * It is a reduced vmxnet3 receive queue: a ring of slots, each with a completion with its
 * generation bit and the frame behind it, and the position up to which the receiver has given slots
 * back. Several senders write, under a lock word in the shared memory. That memory also has
 * everything that the next sender needs, so that it can continue where another sender was stopped
 * or killed.
 *
 * No side trusts the other. The receiver checks completions as a driver does, and gives up an inbox
 * that violates the protocol. A sender writes only to the inbox, whatever it reads there. A process
 * that can write to the inbox can spoil its frames, and no more.
 *
 * One thread at a time may use a receiver's or a sender's end. Functions that return int give 0 or
 * a negative errno value.
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

/* Bytes of the memory that the receiver publishes to senders; zero until it writes there. */
#define VNIC_INBOX_PUBLISHED_SIZE (3664u * 1024)

/* X(identifier, printed name, meaning) */
#define VNIC_BYPASS_LIST(X)                                                                    \
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
	X(UPLINK_SENT, "uplink_sent", "frames sent by the direct uplink")                      \
	X(UPLINK_RECEIVED, "uplink_received", "frames received from the direct uplink")        \
	X(UPLINK_LOST, "uplink_lost", "frames that the direct uplink's interface refused")     \
	X(UPLINK_MISSED, "uplink_missed",                                                      \
	  "frames that the kernel dropped because the ring of the direct uplink was full")     \
	X(LOCK_WAITS, "lock_waits", "times that a thread slept for the lock of the engine")    \
	X(LOCK_WAIT_US, "lock_wait_us", "microseconds of these waits")                         \
	X(PAGE_FAULTS, "page_faults", "page faults of the engine, while on-demand regions exist")

#define VNIC_BYPASS_ENUM(id, name, text) VNIC_BYPASS_##id,
enum vnic_bypass_counter { VNIC_BYPASS_LIST(VNIC_BYPASS_ENUM) VNIC_BYPASS_COUNT };
const char *vnic_bypass_counter_name(enum vnic_bypass_counter counter);

/* --- The receiver. */

struct vnic_inbox;

/*
 * Opens an empty inbox, with a masked interrupt, that a daemon has created for frames of a NIC with
 * that MTU. The inbox takes over the descriptors, also on failure.
 */
int vnic_inbox_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu, struct vnic_inbox **inbox);
/*
 * From now on no other process can map the published memory for writing: the daemon passes the
 * inbox to senders.
 */
int vnic_inbox_publish(const struct vnic_inbox *inbox);
/*
 * The end of an inbox. vnic_inbox_close marks it as closed for all senders, for good: they send by
 * the switch; the owner still frees it. vnic_inbox_destroy marks it likewise, and frees it. A
 * forked child, which must not disturb the senders, calls vnic_inbox_isolate, which replaces the
 * memory that senders see by zeroed private memory, and later vnic_inbox_abandon, which frees the
 * inherited inbox. NULL is allowed, except for vnic_inbox_close.
 */
void vnic_inbox_close(struct vnic_inbox *inbox);
void vnic_inbox_destroy(struct vnic_inbox *inbox);
void vnic_inbox_isolate(const struct vnic_inbox *inbox);
void vnic_inbox_abandon(struct vnic_inbox *inbox);
/* The inbox's descriptors, to be passed on; the inbox still owns them. */
void vnic_inbox_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS]);

/*
 * Senders put no frames into the inbox until vnic_inbox_unlock: they find its lock held
 * (VNIC_OUTBOX_BUSY). `self`: as for vnic_outbox_open. False: a sender has held the lock for about
 * 1 us, or the inbox is closed.
 */
bool vnic_inbox_lock(struct vnic_inbox *inbox, uint32_t self);
void vnic_inbox_unlock(struct vnic_inbox *inbox, uint32_t self);

/*
 * Populates the memory of all slots, which takes 1 to 2 ms: otherwise the first frame in each slot
 * causes a page fault, at either end. Does nothing before Linux 5.14. Any thread.
 */
void vnic_inbox_populate(const struct vnic_inbox *inbox);

/* The memory that senders can only read. */
void *vnic_inbox_published(const struct vnic_inbox *inbox);

/*
 * As vnic_driver_rx and vnic_driver_rx_release. Any process that can write to the inbox can forge a
 * frame's payload reference. vnic_inbox_rx_release may withhold up to 15 released slots from
 * senders. They get them when 16 are released, at a release after a vnic_inbox_rx that returned n
 * frames, or when the interrupt is unmasked.
 */
uint32_t vnic_inbox_rx(struct vnic_inbox *inbox, struct vnic_frame *frames, uint32_t n);
void vnic_inbox_rx_release(struct vnic_inbox *inbox, uint32_t n);

/* The interrupt is an eventfd, to which senders write while the interrupt is unmasked. */
int vnic_inbox_irq_fd(const struct vnic_inbox *inbox);
void vnic_inbox_irq_mask(struct vnic_inbox *inbox);
/* True: frames are already there, and may raise no interrupt. */
bool vnic_inbox_irq_unmask(struct vnic_inbox *inbox);

/*
 * A sender has violated the protocol: the inbox receives nothing any more, and is closed for all
 * senders.
 */
bool vnic_inbox_broken(const struct vnic_inbox *inbox);

/* --- A sender. */

struct vnic_outbox;

enum vnic_outbox_status {
	VNIC_OUTBOX_OK,     /* all frames were sent */
	VNIC_OUTBOX_BUSY,   /* another process has held the lock for about 1 us */
	VNIC_OUTBOX_FULL,   /* no slot is free for the next frame */
	VNIC_OUTBOX_CLOSED, /* the receiver has closed the inbox */
};

/*
 * `self` is the number by which the daemon knows this process: its lease's first QPN >> 12. The
 * outbox takes over the descriptors, also on failure. -EPERM or -EINVAL: the descriptors are not an
 * inbox's.
 */
int vnic_outbox_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu, uint32_t self,
		     struct vnic_outbox **outbox);
/* Whether the receiver has closed the inbox. */
bool vnic_outbox_closed(const struct vnic_outbox *outbox);
void vnic_outbox_close(struct vnic_outbox *outbox);
/* In a forked child: replaces the receiver's memory by zeroed private memory. */
void vnic_outbox_isolate(const struct vnic_outbox *outbox);
/* The memory that only the receiver can write. */
const void *vnic_outbox_published(const struct vnic_outbox *outbox);

/*
 * Copies frames into the receiver's slots, in order, and wakes the receiver. Returns how many
 * frames were copied; *status has the reason if not all. It waits only about 1 us for the lock.
 */
uint32_t vnic_outbox_send(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n,
			  enum vnic_outbox_status *status);
/* Writes to the inbox's interrupt as after a frame, unless the interrupt is masked. */
void vnic_outbox_wake(const struct vnic_outbox *outbox);

/*
 * Reserves up to n slots, so that the caller can write frames without a copy. 0: another sender has
 * the lock, no slot is free, or the inbox is closed. Otherwise the caller holds the lock until
 * vnic_outbox_commit, which sends the first n frames (0: none), in order and with their lengths,
 * and wakes the receiver. The receiver can change the slots at any time.
 *
 * A frame is at most as long as the room of its slot. A payload reference takes
 * sizeof(struct vnic_reference) more bytes of that room, besides its list of pieces.
 */
uint32_t vnic_outbox_reserve(struct vnic_outbox *outbox, struct vnic_frame *frames, uint32_t n);
void vnic_outbox_commit(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n);

/* --- The daemon's end: it introduces senders, and cleans up after those that died. */

struct vnic_inbox_broker;

/*
 * Checks descriptors that a process presents as its inbox. 0: they are an inbox's, so mapping and
 * closing them waits for no process; -EPERM or -EINVAL: they are not. The check itself does not
 * wait, but closing the descriptors of other files may: call this function in a process that may
 * wait.
 */
int vnic_inbox_check(const int fds[VNIC_INBOX_FDS]);
/* Creates an inbox for the process that then opens it. */
int vnic_inbox_broker_create(uint16_t mtu, struct vnic_inbox_broker **broker);
/* Whether the receiver has called vnic_inbox_publish. */
bool vnic_inbox_broker_published(const struct vnic_inbox_broker *broker);
/*
 * Maps the inbox of a client of an earlier daemon, as vnic_inbox_broker_create. The broker takes
 * over the descriptors, also on failure.
 */
int vnic_inbox_broker_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu,
			   struct vnic_inbox_broker **broker);
/* Unmaps the inbox; receiver and senders go on. NULL is allowed. */
void vnic_inbox_broker_close(struct vnic_inbox_broker *broker);
/* The receiver has ended: closes the inbox for all senders. */
void vnic_inbox_broker_revoke(struct vnic_inbox_broker *broker);
/* The descriptors, to be passed on; the broker still owns them. */
void vnic_inbox_broker_fds(const struct vnic_inbox_broker *broker, int fds[VNIC_INBOX_FDS]);
/* The `self` of the sender that holds the lock; 0 = none. */
uint32_t vnic_inbox_broker_holder(const struct vnic_inbox_broker *broker);
/* The sender whose `self` is `holder` has died: releases the lock if that sender holds it. */
void vnic_inbox_broker_unlock(struct vnic_inbox_broker *broker, uint32_t holder);

#endif
