/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmission of the engine's frames: straight into the inbox of a process of this host that the
 * daemon has introduced, or by the NIC to the switch. Mainly for poll/engine_run.c; other folders
 * add inboxes (daemon/, requests/), and ask by which path frames go.
 *
 * The engine writes into transmit buffers of the NIC. Frames for an inbox are copied from there;
 * frames for the switch stay, or move down to the next free buffer. A frame whose inbox is full or
 * locked waits, and so do the frames behind it. After PEER_ROUTE_STALLED_NS the waiting frames go
 * by the switch, and those with a payload reference are lost. If a queue pair is about to end,
 * frames do not wait (tx_hurry).
 *
 * If the frames of a burst are large on average and go to one inbox, the engine writes the next
 * burst into that inbox (without this, 64 KiB WRITEs in packets reach 0.74 of the bandwidth). It
 * also does so after two bursts of one frame each to one inbox: the one-way time of a message of 2
 * B is 2 to 11 % shorter, because the core does not wait for the stores of the headers before it
 * can copy them. If a frame of that burst is for another receiver, the sender moves it out of the
 * inbox before it publishes the frames. Until then only processes of the same user could read the
 * frame, and they could trace this process as well.
 *
 * Frames to other hosts go by the direct uplink if the adapter has one (netdev/packet_port.h),
 * except multicast, which processes of this host receive, too. The direct uplink needs a system
 * call to send. So this file may keep an ACK until the program posts its reply, and send both in
 * one system call (poll/delayed_ack.h). If the process ends before it sends the ACK, the daemon
 * sends the ACK.
 *
 * If the switch takes no frames (urxed is stopped, or about to be replaced), frames to inboxes
 * still go, and frames to the switch are lost. While a capture runs, all frames go by the switch.
 *
 * No function blocks. The caller holds the lock of the adapter.
 */
#ifndef URXE_VERBS_ENGINE_TX_H
#define URXE_VERBS_ENGINE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/packet_port.h>
#include <rxe/rxe.h>
#include <samehost/peer_route.h>
#include <vnic/driver.h>

#include "engine/qpn_process.h"

/*
 * The largest number of frames that are sent together. 60 frames fill whole GSO packets (65,000
 * bytes): one of path MTU 1024, or four, of 15 frames each, of path MTU 4096.
 */
#define TX_BURST 60

/*
 * Time from a failed attempt to send the waiting frames to the next one: about the time in which a
 * receiver gives back some buffers.
 */
#define TX_RETRY_NS 50000u
/* After this time without a free buffer of the NIC, the switch counts as stalled, and frames for it
 * are discarded. */
#define TX_SWITCH_FULL_NS 100000000u
/* If the direct uplink has taken no frame for this time, frames for it are discarded. */
#define TX_UPLINK_FULL_NS 100000000u

struct tx {
	struct vnic_driver *nic;
	struct packet_group *const *uplink; /* the adapter's direct uplink; *uplink is NULL: none */
	/* Bit n: frames may now leave by the direct uplink's socket n. The daemon sets the bits
	 * (vnic_attach_port.uplink_carriers). */
	const uint8_t *uplink_carriers;
	struct peers *peers; /* gets a peer for the owner of each inbox (peer_open) */
	uint8_t mac[6];
	uint16_t mtu;
	uint32_t process; /* number of this process (VNIC_BLOCK) */
	uint64_t now;     /* the time of the last tx_reserve */
	uint64_t counters[VNIC_BYPASS_COUNT];
	/* Buffers that were reserved together. Frames wait in slots[first] to slots[count - 1]. */
	struct vnic_frame slots[TX_BURST];
	uint32_t qpns[TX_BURST];     /* QPNs of the destinations of the frames in `slots` */
	bool continues[TX_BURST];    /* the frame may share a UDP GSO packet with the one before */
	bool acknowledges[TX_BURST]; /* the frame is an ACK without data, and no NAK */
	bool cut[TX_BURST];          /* `len` of the slot leaves out the ICRC, as in inboxes */
	/* The inbox into which the engine writes the next burst, and its buffers. */
	struct peer_route *stream; /* the inbox; NULL: the engine writes to the NIC's buffers */
	uint32_t stream_process;   /* number of the process that got the last burst's first frame */
	bool stream_large;         /* the last frames were large; if not, only a burst of one frame
				      is written to the inbox next */
	struct vnic_frame stream_slots[TX_BURST];
	uint32_t n_stream_slots;     /* while > 0, this process holds the inbox's lock word */
	struct urxe_frame *reserved; /* `frames` of the last tx_reserve, which tx_unlock_inbox
					changes */
	uint32_t first, count;
	/* slots[0] to slots[free - 1] are buffers of the NIC's ring. The first `placed` of them
	 * hold frames for the NIC; the NIC has got the first `posted`, and `free` is 0 then. */
	uint32_t free, placed, posted;
	/* When tx_flush has to try again to send the waiting frames. */
	uint64_t retry_at;
	bool hurries; /* from tx_hurry(true) to tx_hurry(false): frames must not wait */
	/* While `hurries`: frames with payload references that their inbox has not taken. Neither
	 * the switch nor the uplink can carry them. */
	struct vnic_frame aside[TX_BURST];
	uint32_t aside_qpns[TX_BURST], n_aside;
	bool ack_guarded;   /* the daemon has a copy of an ACK that waits in `slots` */
	bool uplink_paused; /* frames to other hosts go by the switch, although there is an uplink
			     */
	/* The time since when the direct uplink refuses frames; 0: it takes them. */
	uint64_t uplink_full_since;
	uint8_t ack[VNIC_LAST_FRAME_MAX]; /* an ACK that is kept for the next system call */
	uint32_t ack_len;                 /* bytes of that ACK; 0: none */
	uint32_t ack_qpn;                 /* QPN of its destination */
	uint64_t full_since;        /* when the NIC ran out of free buffers; 0: it has free ones */
	bool switch_lost;           /* the daemon has ended: the NIC gets no frame */
	bool switch_stalled;        /* the switch is stalled or lost: the slots are `spares` */
	uint8_t *spares;            /* memory for TX_BURST frames in `slots` or in `aside` */
	struct peer_route **routes; /* by number of the process (VNIC_BLOCK); NULL: no inbox */
	struct qpn_processes processes; /* processes of the QPNs that an HCA may have chosen */
};

/* Initialises *tx. The arguments are parts of the adapter, and have to live as long as *tx. 0 or
 * -ENOMEM; after -ENOMEM, tx_destroy is not needed. */
int tx_init(struct tx *tx, struct vnic_driver *nic, struct packet_group *const *uplink,
	    struct peers *peers, const struct vnic_attach_welcome *welcome);
/* Closes all inboxes and forgets waiting frames. Allowed in a forked child, too, and for a struct
 * whose members are all 0. */
void tx_destroy(struct tx *tx);
/* In a forked child: replaces the child's mappings of peers' inboxes by private memory. */
void tx_isolate(const struct tx *tx);
/* The daemon has ended: until tx_set_nic, frames for the switch are lost. */
void tx_lose_switch(struct tx *tx);
/* Replaces the NIC by that of a new daemon. All waiting frames are lost, also those for inboxes,
 * which may lie in buffers of the old NIC. The inboxes of peers stay open. */
void tx_set_nic(struct tx *tx, struct vnic_driver *nic);

/* Calls tx_send_ack(). `pause`: from now on frames to other hosts go by the switch, while the
 * process opens new sockets for the direct uplink; else they go by the direct uplink again. */
void tx_pause_uplink(struct tx *tx, bool pause);
/* Whether frames to that MAC address go by the direct uplink now, unless an inbox leads there. */
bool tx_by_uplink(const struct tx *tx, const uint8_t mac[6]);
/*
 * The index of the direct uplink's packet socket by which packets of a connection leave now, if
 * they go by the direct uplink (tx_by_uplink). The adapter must have a direct uplink.
 */
uint32_t tx_uplink_member(const struct tx *tx, uint32_t dest_qpn, const struct urxe_gid *source,
			  const struct urxe_gid *destination);
/* Whether the direct uplink takes and delivers UDP GSO packets now. Not while a capture runs,
 * because the switch then carries all frames. */
bool tx_has_gso(const struct tx *tx);
/* Whether the adapter has the open inbox of the process with that QPN of the device with that MAC.
 * If not, the caller asks the daemon for an introduction. False for each QPN that an HCA may have
 * chosen: only the daemon knows which process has it now. */
bool tx_has_inbox(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/* Call it when the daemon has introduced no process for the QPN: forgets which process had it, if
 * an HCA has chosen the QPN. */
void tx_forget_qpn(struct tx *tx, uint32_t qpn);
/* The process that has that QPN of the device with that MAC. NULL: the adapter lacks its inbox,
 * the inbox is closed, the process has ended, or the daemon forbids to bypass
 * the switch, because a capture runs. */
struct peer *tx_peer(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/*
 * Adds the inbox of the process with that QPN of the device with that MAC: a process of this host,
 * or the device process of a virtual machine. Takes the descriptors, also after an error. `of_hca`:
 * an HCA may have chosen the QPN. 0 or a negative errno value.
 */
int tx_add_inbox(struct tx *tx, const uint8_t mac[6], uint32_t qpn, bool of_hca,
		 const int fds[VNIC_INBOX_FDS]);

/*
 * Reserves up to n buffers (at most TX_BURST) for the engine to write to; only while no frame
 * waits. Returns their number. 0: the NIC has no free buffer. Otherwise the caller must call
 * tx_send: until then it may hold the lock word of an inbox, and `frames` must stay valid.
 */
uint32_t tx_reserve(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);
/*
 * Between tx_reserve and tx_send, before a call that may take long: if this process holds the lock
 * word of an inbox, sends the built frames for that inbox and releases the word. `data` of the sent
 * frames becomes NULL; the other frames move to buffers of the NIC, and get the new addresses.
 */
void tx_unlock_inbox(struct tx *tx);
/* Sends the first n of the reserved frames. False: some wait; tx_deadline is the time of the next
 * attempt. */
bool tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n);
/*
 * Sends waiting frames. False: some still wait. If an ACK is among them, the daemon gets a copy of
 * the first such ACK, and sends it if this process ends before it has sent the ACK itself.
 */
bool tx_flush(struct tx *tx, uint64_t now);
/*
 * Call it with true before a queue pair ends, because its ACKs have to leave first
 * (engine_flush_acks), and with false after the engine has sent them. In between no frame waits for
 * an inbox or for the direct uplink: a frame that its inbox or the packet socket does not take at
 * once goes by the switch, also past frames in the inbox. A frame with a reference, which the
 * switch cannot carry, waits again after tx_hurry(false).
 */
void tx_hurry(struct tx *tx, bool hurry);

/*
 * Keeps a copy of the frame, which is the first reserved one, for a later system call. The caller
 * then calls tx_send with n = 0. False: the frame is no ACK for the direct uplink or too long,
 * another ACK is kept, or the daemon has ended.
 */
bool tx_keep_ack(struct tx *tx, const struct urxe_frame *frame);
/*
 * Sends the kept ACK by the direct uplink, or discards it if the adapter has none any more. If the
 * socket is full, the ACK stays. If an ACK waits in the NIC's ring, wakes the daemon, which
 * forwards it.
 */
void tx_send_ack(struct tx *tx);
/* Whether an ACK is kept for the direct uplink, or waits in the NIC's ring without a doorbell. */
static inline bool tx_delays_ack(const struct tx *tx)
{
	return tx->ack_len || vnic_driver_tx_due(tx->nic);
}
/* Whether a frame to that QPN of that MAC may reference its payload: it goes to an inbox whose
 * owner reads this process's memory. False while frames to that inbox may go by the switch, which
 * carries no references: during tx_hurry, and for PEER_ROUTE_DETOUR_NS after a stall. */
bool tx_may_reference(const struct tx *tx, const uint8_t mac[6], uint32_t qpn);
/*
 * Sets *frame, for the engine, to a frame that came by the inbox (`from_inbox`) or by the switch.
 * False: the frame references memory of a process that the adapter does not know.
 */
bool tx_convert_received(const struct tx *tx, const struct vnic_frame *buffer, bool from_inbox,
			 struct urxe_frame *frame);
/* The time (clock_now()) of the next tx_flush; URXE_NEVER: no frame waits. */
uint64_t tx_deadline(const struct tx *tx);

static inline void tx_count(struct tx *tx, enum vnic_bypass_counter counter, uint32_t n)
{
	tx->counters[counter] += n;
}

#endif
