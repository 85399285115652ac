/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of the virtual machine on this host: processes of the same user, programs and device
 * processes of other machines, to whose queue pairs those of the machine are connected. The kernel
 * copies WRITEs, READs and large SENDs between a peer's memory and the machine's; other packets go
 * through inboxes (docs/same-host.md).
 */
#ifndef URXE_VM_HOST_MACHINE_PEERS_H
#define URXE_VM_HOST_MACHINE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include <samehost/peer_route.h>
#include <vnic/inbox.h>

#include "vm/host/machine_session.h"

/* A queue pair for which urxed has to be asked again, because it did not know the user of the queue
 * pair's process yet. */
struct machine_peers_unknown {
	uint8_t mac[6];
	uint32_t qpn;
};
/* The most such queue pairs. Messages to further ones go in packets. */
#define MACHINE_PEERS_UNKNOWN 16

struct machine_peers {
	struct vm_session *session;
	struct vnic_inbox *inbox; /* NULL = none */
	bool armed; /* the next frame raises the inbox's interrupt (machine_peers_arm) */
	bool ended; /* machine_peers_end_service was called */
	struct peers peers;
	struct urxe_copy_ops copy_ops;          /* of the engine, with &peers as their context */
	struct urxe_copy_table *table;          /* of the engine; NULL = no copies */
	struct peer_route *routes[VNIC_BLOCKS]; /* by VNIC_BLOCK of the peer's QPN */
	uint64_t counters[VNIC_BYPASS_COUNT];
	struct machine_peers_unknown unknown[MACHINE_PEERS_UNKNOWN];
	uint32_t n_unknown;
	uint64_t ask_at; /* when to ask urxed for them again, ns */
};

/*
 * Publishes the memory of the machine to its peers. Call it in the thread that runs the engine,
 * after vm_session_open; *p must stay where it is. If no inbox can be made, for example because the
 * session has no daemon now, or if this process takes part in no copies (peers_publish), all
 * messages of the machine go in packets until the process ends.
 */
void machine_peers_open(struct machine_peers *p, struct vm_session *session);
/*
 * The machine may go on in another process: peers send their frames to the switch from now on, and
 * copy nothing, until the process ends.
 */
void machine_peers_end_service(struct machine_peers *p);
/*
 * While another process takes the machine over, peers find the inbox locked: they keep their
 * frames, and after 0.1 s send them to the switch. This lasts until machine_peers_end_service or,
 * if the other process fails, machine_peers_admit_senders. A peer that is sending at the moment may
 * still put frames into the inbox.
 */
void machine_peers_hold_senders(struct machine_peers *p);
void machine_peers_admit_senders(struct machine_peers *p);
/* Call it when the engine no longer exists. */
void machine_peers_close(struct machine_peers *p);

/*
 * Call it before a queue pair of the machine is connected to the queue pair `qpn` of the device
 * with that MAC: asks urxed for the process of that queue pair, if the process may be on this host
 * and is not known.
 */
void machine_peers_request_introduction(struct machine_peers *p, const uint8_t mac[6],
					uint32_t qpn);
/* Asks again for the processes that urxed could not name for the moment, once it is time. Returns
 * the time of the next call, UINT64_MAX: none. `now`: as now_ns(). */
uint64_t machine_peers_tick(struct machine_peers *p, uint64_t now);
/* Whether messages to that queue pair may bypass the switch: its process is known, and urxed
 * permits copies and frames to inboxes now. */
bool machine_peers_may_bypass(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);

/* Whether the process of that queue pair is known. */
bool machine_peers_knows(const struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);

/*
 * Whether the engine may send that queue pair payloads as references (struct urxe_reference), which
 * the peer's process copies from the machine's memory. False also while frames to it go by the
 * switch.
 */
bool machine_peers_may_reference(struct machine_peers *p, const uint8_t mac[6], uint32_t qpn);

/* --- Frames */

/* Longest frame that may go to an inbox, with its ICRC, bytes; UINT32_MAX: the machine has no
 * inbox. */
uint32_t machine_peers_frame_max(const struct machine_peers *p);
/*
 * Sends frames[0] and those that follow it to the same inbox, and returns how many the inbox took.
 * *waits: the caller keeps the next frame, and tries again later. If 0 is returned and *waits is
 * false, the caller sends frames[0] by the switch.
 */
uint32_t machine_peers_send(struct machine_peers *p, uint64_t now, const struct urxe_frame *frames,
			    uint32_t n, bool *waits);
/*
 * Takes up to `max` frames, at most MACHINE_PEERS_BURST, from the inbox, and returns their number.
 * They stay valid until the caller gives *taken slots of the inbox back by machine_peers_release.
 * *taken may be larger: it counts dropped frames, too, whose reference is to an unknown process.
 */
#define MACHINE_PEERS_BURST 32
uint32_t machine_peers_receive(struct machine_peers *p, struct urxe_frame *frames, uint32_t max,
			       uint32_t *taken);
void machine_peers_release(struct machine_peers *p, uint32_t taken);

/* The inbox's interrupt, for the epoll set; -1: none. */
int machine_peers_fd(const struct machine_peers *p);
/* Call it when machine_peers_fd is readable: makes it unreadable until the next interrupt. */
void machine_peers_event(const struct machine_peers *p);
/* Before a sleep: the next frame makes machine_peers_fd readable. True: the inbox has frames. */
bool machine_peers_arm(struct machine_peers *p);
/* After a sleep: frames raise no interrupt. */
void machine_peers_disarm(struct machine_peers *p);

#endif
