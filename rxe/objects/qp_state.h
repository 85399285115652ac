/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a QP's state that belong to one mechanism each. They are here so that objects/qp.h
 * does not depend on the files that implement the mechanisms. */
#ifndef URXE_OBJECTS_QP_STATE_H
#define URXE_OBJECTS_QP_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "congestion/dcqcn.h"
#include "util/timer.h"

/* End-to-end credits of the requester (requester/e2e_credits.h). */
struct credit {
	bool limited;       /* the peer sends credit counts; false until the first one arrives */
	uint32_t limit;     /* recv_seq of the newest request that may be sent */
	uint32_t acked_seq; /* recv_seq of the newest request that is acknowledged */
};

/* Packets in the order of their PSNs, without duplicates (objects/out_of_order.h). */
TAILQ_HEAD(out_of_order_list, out_of_order_packet);

/* Most repetitions of the sequence NAK of a gap. A requester with urxe counts the first NAK and its
 * repetitions as one retry (requester/retransmit.c). urxe_state_restore refuses a state with more
 * repetitions (state/gap_record.c). */
#define PSN_GAP_REPEATS 3

/* Requests that a responder has received and not executed (responder/psn_gap.h). */
struct psn_gap {
	struct out_of_order_list kept; /* packets behind the gap, or from the expected PSN on */
	bool naks_begun;               /* a sequence NAK named the gap, or psn_gap_suspect has
					   started the gap timer without a NAK */
	uint8_t repeats;     /* number of repetitions of that NAK so far, up to PSN_GAP_REPEATS */
	bool first_nak_sent; /* psn_gap_suspect causes two sequence NAKs: the first one was sent */
	bool dropped; /* a packet behind the expected one was dropped, and no NAK has named it; with
			 go-back-N only while the expected packet is kept */
	uint64_t nak_at;    /* time of the newest NAK, ns */
	uint64_t repair_ns; /* smoothed time from a NAK to the packet it asked for; 0 = unknown */
};

/* The CNP that a QP sends next, while urxe_qp.cnp_due is set (congestion/cnp.h). */
struct cnp {
	uint32_t dest_qpn;
	uint64_t next; /* no CNP before this time, ns */
	struct urxe_path path;
};

/* Transmit rate of a QP (congestion/pacing.h). */
struct pace {
	struct dcqcn dcqcn;
	uint64_t limit_bps; /* rate limit of the QP's attributes, bits/s; 0 = none */
	uint64_t next;      /* while the QP is paced: no packet leaves before this time, ns */
	struct timer timer; /* runs while a packet waits for `next` */
};

/* Multicast groups of a UD QP (objects/multicast.h). */
LIST_HEAD(mcast_members, mcast_member);

#endif
