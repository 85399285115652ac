/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmission of the engine's frames: straight into the inbox of a process of this host that the
 * daemon has introduced, or by the NIC to the switch. For engine_run.c and samehost/peer.c.
 *
 * The engine writes into transmit buffers of the NIC. Frames for an inbox are copied from there;
 * frames for the switch stay, or move down to the next free buffer. A frame whose inbox is full
 * waits, and so do the frames behind it, until the receiver counts as stalled.
 *
 * If all frames of a burst are large and go to one inbox, the engine writes the next burst straight
 * into that inbox (without this, 64 KiB WRITEs in packets reach 0.74 of the bandwidth). It also
 * does so after two bursts of one frame each to one inbox: the one-way time of a message of 2 B is
 * 2 to 11 % shorter, because the core does not wait for the stores of the headers before it can
 * copy them. A frame for another receiver stands in the inbox until it is moved. Only processes of
 * the same user could read it, and they could trace this process as well.
 *
 * Frames to other hosts go by the direct uplink if the adapter has one (netdev/packet_port.h),
 * except multicast, which processes of this host receive, too. To send one takes a system call. So
 * an ACK may be kept until the program posts its reply, and leave with the reply in one system call
 * (poll/reply_detect.h). If the process ends before it sends the ACK, the daemon sends it.
 *
 * If the switch takes no frames (urxed is stopped, or about to be replaced), frames to inboxes
 * still go, and frames to the switch are lost.
 *
 * No function blocks. The caller holds the lock of the adapter.
 */
#ifndef URXE_VERBS_ENGINE_TX_H
#define URXE_VERBS_ENGINE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/packet_port.h>
#include <rxe/rxe.h>
#include <vnic/driver.h>

#include "engine/tx_alias.h"

/*
 * Frames that are sent together at most. As GSO packets (65,000 bytes) they are one of path MTU
 * 1024, or four of 15 frames of path MTU 4096, and no short one.
 */
#define TX_BURST 60

/*
 * Time until the next attempt to send: about the time in which a receiver gives back some buffers.
 */
#define TX_RETRY_NS 50000u
/*
 * After this time, frames go by the switch instead of the inbox. A full inbox means that the
 * receiver has had no processor for some time slices. A lock word is held for some microseconds, or
 * by a process that has been stopped.
 */
#define TX_INBOX_FULL_NS   100000000u
#define TX_INBOX_LOCKED_NS 1000000u
/* After this time without a free buffer of the NIC, the switch counts as stalled. */
#define TX_SWITCH_FULL_NS 100000000u
/* After this time in which the direct uplink took no frame, its frames are lost. */
#define TX_UPLINK_FULL_NS 100000000u
/*
 * After TX_INBOX_FULL_NS or TX_INBOX_LOCKED_NS, frames to that inbox go by the switch for this
 * time. A change between inbox and switch reorders frames, which costs the receiver.
 */
#define TX_DETOUR_NS 10000000u

struct tx_route;
struct peer;
struct peers;

struct tx {
	struct vnic_driver *nic;
	struct packet_group *const *uplink; /* of the adapter; *uplink is NULL: none */
	const uint8_t *uplink_carriers;     /* vnic_attach_port.uplink_carriers */
	struct peers *peers;                /* those of the inboxes */
	uint8_t mac[6];
	uint16_t mtu;
	uint32_t process; /* number of this process (VNIC_BLOCK) */
	uint64_t now;     /* of the last tx_reserve */
	uint64_t counters[VNIC_BYPASS_COUNT];
	/* Buffers that were reserved together; from `first` to `count` frames wait in them. */
	struct vnic_frame slots[TX_BURST];
	uint32_t qpns[TX_BURST];  /* of their destinations */
	bool continues[TX_BURST]; /* urxe_frame.continues */
	bool cut[TX_BURST];       /* without their ICRC */
	/* The inbox that the next burst is written to, and its buffers. */
	struct tx_route *stream; /* NULL: none */
	uint32_t stream_process; /* destination of the first frame of the last burst */
	bool stream_large;       /* the last frames were large; else only a single frame next */
	struct vnic_frame stream_slots[TX_BURST];
	uint32_t n_stream_slots;     /* > 0: this process holds the inbox's lock word */
	struct urxe_frame *reserved; /* argument of tx_reserve, for tx_unlock_inbox */
	uint32_t first, count;
	/* slots[0] to slots[free - 1] are buffers of the NIC's ring; 0 after a commit. Of these,
	 * the first `placed` hold frames for the NIC, and the first `posted` were committed. */
	uint32_t free, placed, posted;
	/* When tx_flush has to try again to send the waiting frames. */
	uint64_t retry_at;
	bool uplink_paused; /* frames to other hosts go by the switch, although there is an uplink
			     */
	uint64_t uplink_full_since; /* since when the direct uplink refuses frames; 0: it takes them
				     */
	uint8_t ack[VNIC_LAST_FRAME_MAX]; /* an ACK that is kept for the next system call */
	uint32_t ack_len;                 /* 0: none */
	uint32_t ack_qpn;                 /* of its destination */
	uint64_t full_since;      /* when the NIC ran out of free buffers; 0: it has free ones */
	bool switch_lost;         /* the daemon has ended: the NIC gets no frame */
	bool switch_stalled;      /* the slots are `spares`: the switch is stalled */
	uint8_t *spares;          /* TX_BURST frames */
	struct tx_route **routes; /* by VNIC_BLOCK */
	struct tx_aliases aliases;
};

/* For the NIC, the direct uplink and the peers of an adapter, which keeps `welcome`. 0 or -ENOMEM;
 * then tx_destroy is not needed. */
int tx_init(struct tx *tx, struct vnic_driver *nic, struct packet_group *const *uplink,
	    struct peers *peers, const struct vnic_attach_welcome *welcome);
/* Closes all inboxes and forgets waiting frames. Also in a forked child, and if all members are 0.
 */
void tx_destroy(struct tx *tx);
/* In a forked child: replaces the memory of peers by private memory. */
void tx_isolate(const struct tx *tx);
/* The daemon has ended: until tx_set_nic, frames for the switch are lost. */
void tx_lose_switch(struct tx *tx);
/* Replaces the NIC: frames that wait for the old one are lost, the inboxes of peers stay. */
void tx_set_nic(struct tx *tx, struct vnic_driver *nic);

/* From now on frames to other hosts go by the switch, or by the direct uplink again. */
void tx_pause_uplink(struct tx *tx, bool pause);
/* Whether frames to that MAC address go by the direct uplink now. */
bool tx_by_uplink(const struct tx *tx, const uint8_t mac[6]);
/*
 * The member of the direct uplink by which packets of a connection leave now, without regard to
 * tx_by_uplink. The adapter has a direct uplink.
 */
uint32_t tx_uplink_member(const struct tx *tx, uint32_t dest_qpn, const struct urxe_gid *source,
			  const struct urxe_gid *destination);
/* Whether the adapter receives UDP GSO packets now: not while the daemon wants to see all frames.
 */
bool tx_has_gso(const struct tx *tx);
/* Whether the adapter has the inbox of the process with that QPN of the device with that MAC. */
bool tx_has_inbox(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/* The process that has that QPN. NULL: the MAC address is another host's, or frames go by the
 * switch now. */
struct peer *tx_peer(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/*
 * Takes the descriptors of the inbox of the process with that QPN of the device with that MAC: a
 * process of this host, or the device process of a virtual machine. `of_hca`: an HCA may have
 * chosen the QPN. 0 or a negative errno value.
 */
int tx_add_inbox(struct tx *tx, const uint8_t mac[6], uint32_t qpn, bool of_hca,
		 const int fds[VNIC_INBOX_FDS]);

/*
 * Reserves up to n buffers (at most TX_BURST) for the engine to write to; only while no frame
 * waits. 0: the NIC has no free buffer. Otherwise the caller must call tx_send, because it may hold
 * the lock word of an inbox until then. `frames` must live until then.
 */
uint32_t tx_reserve(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);
/*
 * Between tx_reserve and tx_send, before a call that may take long: releases that lock word. Frames
 * for that inbox are sent, and their data becomes NULL. Other frames move to buffers of the NIC,
 * with their contents, and get the new addresses.
 */
void tx_unlock_inbox(struct tx *tx);
/* Sends the first n of the reserved frames. False: some wait. */
bool tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);
/* Sends waiting frames. False: some still wait. */
bool tx_flush(struct tx *tx, uint64_t now);

/*
 * Keeps the first reserved frame. The caller then calls tx_send with n = 0. False: the frame is no
 * ACK for the direct uplink, or another one is kept.
 */
bool tx_keep_ack(struct tx *tx, const struct urxe_frame *frame);
/*
 * Sends the kept ACK by the direct uplink, if no frame has taken it along. If an ACK waits in the
 * NIC's ring, wakes the daemon, which forwards it.
 */
void tx_send_ack(struct tx *tx);
/* Whether an ACK is kept for the direct uplink, or waits in the NIC's ring without a doorbell. */
static inline bool tx_delays_ack(const struct tx *tx)
{
	return tx->ack_len || vnic_driver_tx_due(tx->nic);
}
/* Whether a frame to that QPN of that MAC may reference its payload: it goes to an inbox whose
 * owner reads this process's memory. */
bool tx_may_reference(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/*
 * Converts a frame that was received from the inbox or from the switch for the engine. False: the
 * process of its reference is not known.
 */
bool tx_convert_received(const struct tx *tx, const struct vnic_frame *buffer, bool from_inbox,
			 struct urxe_frame *frame);
/* Time of the next tx_flush; URXE_NEVER: no frame waits. */
uint64_t tx_deadline(const struct tx *tx);

static inline void tx_count(struct tx *tx, enum vnic_bypass_counter counter, uint32_t n)
{
	tx->counters[counter] += n;
}

#endif
