/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the engine's frames leave: straight into the inbox of a process of this
 * host to which the daemon has introduced us, or else by the NIC to the switch.
 *
 * The engine writes into transmit buffers of the NIC. What goes straight is copied
 * from there; what goes by the switch stays where it is, or moves down to the next
 * free buffer. A frame whose inbox is full waits here, and what is behind it too,
 * as frames wait in the switch, until the receiver counts as stalled.
 *
 * Large frames that went all into one inbox are a stream: the next ones are written there at once.
 * One of those that turns out to be for somebody else stands there until it is moved, for processes
 * of our own user to see, which could trace us as well.
 *
 * A switch that takes nothing (urxed is stopped, or about to be replaced) holds up no
 * one who does not need it: what goes straight still does, the rest is lost.
 *
 * No function blocks. Whoever uses an egress has it for himself (the port's lock).
 */
#ifndef URXE_VERBS_ENGINE_TX_H
#define URXE_VERBS_ENGINE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/driver.h>

#define EGRESS_BURST 32

/* How soon to look again for room: about what a receiver takes to give back some buffers. */
#define EGRESS_RETRY_NS 50000u
/*
 * From when on frames go by the switch: a full inbox whose receiver has not had its
 * core for some time slices is stalled, which the switch sees alike. A lock is kept
 * for some us, or by one who has been stopped.
 */
#define EGRESS_FULL_NS 100000000u
#define EGRESS_BUSY_NS 1000000u
/* A switch that has taken no frame for so long, with the NIC's ring full, is stalled. */
#define EGRESS_SWITCH_NS 100000000u
/* For how long then: frames that overtake each other on two ways cost their receiver. */
#define EGRESS_DETOUR_NS 10000000u

struct egress_route;
struct peer;

struct egress {
	struct vnic_driver *nic;
	uint8_t mac[6];
	uint16_t mtu;
	uint32_t process; /* we, for others */
	uint64_t now;     /* of the last egress_reserve */
	uint64_t counters[VNIC_DIRECT_COUNT];
	/* Buffers that were given together; from `first` to `count` frames wait in them. */
	struct vnic_frame slots[EGRESS_BURST];
	uint32_t qpns[EGRESS_BURST]; /* where they go */
	/* Where the last burst of large frames went; and buffers of that inbox, with its lock. */
	struct egress_route *stream; /* NULL: there is none */
	uint32_t stream_process;
	struct vnic_frame ahead[EGRESS_BURST];
	uint32_t n_ahead;         /* 0: the lock is not ours */
	struct urxe_frame *given; /* as egress_reserve gave them; for n_ahead */
	uint32_t first, count;
	uint32_t free;   /* slots, from the first, that the NIC has given and not got back */
	uint32_t posted; /* of the slots, from the first: the NIC has them */
	uint32_t placed; /* and these it is to get */
	uint64_t retry_at;
	uint64_t full_since;          /* the NIC had no buffer; 0 = it has */
	bool spare;                   /* the slots are none of the NIC's: the switch is stalled */
	uint8_t *spares;              /* EGRESS_BURST frames */
	struct egress_route **routes; /* by VNIC_PROCESS */
};

/* For the NIC of a port. -ENOMEM; then there is nothing to end. */
int egress_init(struct egress *egress, struct vnic_driver *nic,
		const struct vnic_attach_welcome *who);
/* Forgets every way, and frames that wait. Also in a forked child; of all zeros, too. */
void egress_done(struct egress *egress);
/* In a forked child: replaces the memory of peers by private memory. */
void egress_isolate(const struct egress *egress);
/* There is another NIC: what waits for the old one is lost, the ways to others stay. */
void egress_set_nic(struct egress *egress, struct vnic_driver *nic);

/* Whether frames to that QPN of this host go straight. */
bool egress_knows(const struct egress *egress, uint32_t qpn);
/* The process that has that QPN, where the MAC is this host's and frames go straight now; NULL:
 * they do not. */
struct peer *egress_peer(const struct egress *egress, const uint8_t mac[6], uint32_t qpn);
/* The daemon has given the inbox of that QPN's owner. The descriptors are the egress's now. */
int egress_add(struct egress *egress, uint32_t qpn, const int fds[VNIC_INBOX_FDS]);

/*
 * Buffers for the engine to write to, up to n (at most EGRESS_BURST); only while
 * nothing waits. 0: the switch has given back none. Else an egress_send has to follow, since those
 * of another process's inbox are given with its lock. `frames` has to live until then.
 */
uint32_t egress_reserve(struct egress *egress, uint64_t now, struct urxe_frame *frames, uint32_t n);
/*
 * Between the two, before what may last: gives that lock back. Frames that belong there are handed
 * over, and have no data from now on. Others are moved to buffers of the NIC, with what was written
 * to them, and have those addresses.
 */
void egress_vacate(struct egress *egress);
/* Sends the first n of them, or lets them wait: false. */
bool egress_send(struct egress *egress, uint64_t now, struct urxe_frame *frames, uint32_t n);
/* Sends what waits. False: something still does. */
bool egress_flush(struct egress *egress, uint64_t now);
/* Whether a frame to that QPN of that MAC may reference its payload: it goes to an inbox whose
 * owner reads this process's memory. */
bool egress_may_reference(const struct egress *egress, const uint8_t mac[6], uint32_t qpn);
/* A frame that came in, as the engine takes it. False: the process of its reference is not known.
 */
bool egress_take_in(const struct egress *egress, const struct vnic_frame *buffer,
		    struct urxe_frame *frame);
/* When to flush again; URXE_NEVER: nothing waits. */
uint64_t egress_deadline(const struct egress *egress);

static inline void egress_count(struct egress *egress, enum vnic_direct_counter counter, uint32_t n)
{
	egress->counters[counter] += n;
}

#endif
