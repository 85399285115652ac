/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_QP_H
#define URXE_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/fetch.h>
#include <rxe/psn.h>
#include <rxe/rxe.h>

#include "objects/qp_state.h"
#include "objects/sq.h"
#include "recovery/rtt.h"
#include "util/timer.h"
#include "wire/header_fields.h"

/* What a peer does with requests behind a gap, as far as its answers have shown. */
enum peer_kind { PEER_UNKNOWN, PEER_KEEPS, PEER_DROPS };

/* PSNs [psn, end) are to be sent again, as far as they are not answered. */
struct resend {
	uint32_t psn;
	uint32_t end;
	uint32_t wqe; /* at or before the request that psn is in */
};

/* What was sent again since the oldest PSN was found missing. */
struct repair {
	bool open;
	bool naked;        /* the peer said so */
	uint32_t high;     /* behind the newest PSN sent again */
	uint32_t frontier; /* requester.psn when it began */
};

/* What came of the last request that was tried by the direct transport. */
enum direct_chance { DIRECT_UNTRIED, DIRECT_WORKS, DIRECT_FAILS };

/* That packets of a connection reach the peer and are in step with it. */
struct direct_proof {
	uint32_t proof;   /* dev->direct_era when one was acknowledged; 0 = none was yet */
	uint32_t version; /* of the peer's QP in its table then; 0 = not looked up yet */
	uint8_t chance;   /* enum direct_chance */
	uint8_t unseen;   /* requests in a row before whose posting not all was seen to be done */
	uint8_t looks; /* requests in packets, since the peer was last asked whether it is awake */
	bool in_packets; /* what fits into one is sent so, to a peer that was awake */
};

/*
 * Requester and completer: PSNs [una, psn) are sent and not acknowledged.
 *
 * Its first 32 bytes share a cache line with the send queue, and are all that a QP reads which
 * has nothing to send; two lines more are for each packet.
 */
struct requester {
	uint32_t psn;       /* of the next packet; inside request `cur` of the queue */
	uint32_t una;       /* oldest unacknowledged; inside request `tail` */
	uint32_t acked;     /* all before it is acknowledged, but for READs and atomics */
	uint32_t rd_atomic; /* READ requests and atomics on their way */
	struct resend resend;
	uint8_t error;    /* enum urxe_wc_status that a request ends in once it is the oldest */
	bool held;        /* the next packet waits for its time by the rate */
	bool rnr_wait;    /* the timer runs for an RNR NAK */
	bool drain_event; /* SQD: the owner waits for the drained event */

	uint32_t recv_seq; /* requests posted that take a receive from the peer */
	struct credit credit;
	uint8_t retries; /* left */
	uint8_t rnr_retries;
	/* retry.c's own, but for `answered`: */
	bool nak_seen;        /* a NAK named una */
	bool missing;         /* a response was found missing since the last progress */
	bool window_lossy;    /* something of the window up to window_mark was lost */
	bool window_cut;      /* it may be less than it could */
	uint8_t probes;       /* since the last progress */
	uint8_t peer;         /* enum peer_kind */
	uint32_t window;      /* packets that may be outstanding */
	uint32_t window_mark; /* psn when it changed */
	uint32_t asked;       /* missing responses up to here were asked for */
	struct direct_proof direct;
	struct repair repair;

	struct rtt rtt;
	uint64_t timeout_due, probe_due, missing_due;

	/* After losses, and of READs and atomics. */
	uint64_t *answered; /* bit psn & answered_mask: this READ or atomic response is in place */
	uint32_t answered_mask;
	uint32_t error_wqe;   /* place in the queue of the request that ends in `error` */
	uint64_t una_sent;    /* when una was sent again since; 0 = not yet */
	uint32_t plain;       /* packets to send without payload references, after a loss */
	uint32_t plain_after; /* how many these are after the next loss */
	bool referenced;      /* payload references may be in flight */
	bool sent_to_group;   /* UD: the newest packet is for a multicast group */
	uint8_t streak;       /* NAKs in a row, each for the packet behind what was repaired */
	uint8_t probe_span;   /* packets of the last probe */
};

enum resp_message { RESP_NONE, RESP_SEND, RESP_WRITE };

/* No MSN: the packet is so far back, behind READs and atomics, that its PSN is one to come. */
#define RESP_ACK_PAST UINT32_MAX

/* A part of a READ that the peer asks for again. */
struct resp_repeat {
	uint32_t psn;
	uint32_t length; /* bytes */
};

/* Parts of one READ that are remembered while another one is being sent. */
#define RESP_REPEATS 4

enum resp_resource_kind { RES_READ, RES_ATOMIC, RES_FLUSH, RES_ATOMIC_WRITE };

/* A READ, atomic, FLUSH or ATOMIC WRITE request, kept so that a duplicate can be answered
 * (IBA 9.7.5.1.5). */
struct resp_resource {
	uint8_t kind;  /* enum resp_resource_kind */
	bool kept;     /* the slot holds a request */
	bool pending;  /* a response is due */
	bool repeated; /* what is due answers a duplicate */
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t rkey;
	uint32_t length; /* READ: bytes */
	uint64_t va;
	uint64_t original; /* atomic: value before it */
	uint32_t msn;
	/* The response in progress, all or the rest of the original one. */
	uint32_t start_psn;
	uint32_t next_psn;
	uint32_t end_psn;
	uint32_t end; /* offset behind its last byte */
	/* Repetitions that wait for it to end. */
	struct resp_repeat repeats[RESP_REPEATS];
	uint8_t n_repeats;
};

/* The first 40 bytes, up to `wqe`, are for each packet. */
struct responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	/* What an ACK names, and the MSN with it, or RESP_ACK_PAST: the newest packet whose answer
	 * is an ACK. */
	uint32_t ack_psn, ack_msn;
	uint8_t message; /* enum resp_message in progress */
	bool has_wqe;    /* wqe is taken for the message in progress, or left over from one */
	bool nak_sent;   /* for this expected PSN */
	bool ack_due;
	uint8_t nak;          /* AETH syndrome due; 0 = none */
	bool in_gap;          /* `gap` has something: requests before others lack, or did last */
	bool silent;          /* a duplicate has had no answer yet, since silent_since */
	uint32_t res_pending; /* how many of `resources` are */
	uint32_t offset;      /* bytes of the message in place */
	const struct recv_wqe *wqe;

	struct recv_wqe *copy; /* of a SRQ's request; NULL: the QP has a queue of its own */
	struct {
		uint64_t va;
		uint32_t rkey;
		uint32_t length;
	} write;
	bool comm_est; /* the event was given */
	uint32_t nak_psn;
	uint64_t silent_since;
	struct resp_resource *resources; /* ring of attr.max_dest_rd_atomic */
	uint32_t res_oldest;             /* the slot that the next one takes */
	uint32_t res_next;               /* a slot: of older ones none is pending */
	struct gap gap;
};

/* Ethernet, network and UDP headers of a connected QP's packets, lengths left out. */
struct header_template {
	uint32_t ipv4_sum; /* of its 16-bit words, for the checksum */
	uint8_t l3;        /* offset of the network header */
	uint8_t len;
	uint8_t net; /* enum urxe_net */
	uint8_t bytes[ETH_LEN + VLAN_LEN + L3_MAX_LEN];
};

enum { TIMER_RETRY, TIMER_GAP, TIMER_ACK, TIMER_PACE };

/*
 * With many QPs each cache line that a packet needs is a cache miss. So the members that packets
 * need in the common case stand together.
 */
struct urxe_qp {
	/* Whatever it does. */
	struct urxe_dev *dev __attribute__((aligned(URXE_CACHE_LINE)));
	void *ctx;
	uint32_t qpn;
	uint32_t pd;
	uint16_t mtu; /* path MTU in bytes */
	uint8_t type; /* enum urxe_qp_type */
	bool sq_sig_all;
	bool queued; /* in dev->ready */
	bool paced;  /* some rate may hold */
	bool cnp_due;
	TAILQ_ENTRY(urxe_qp) ready_link;
	struct urxe_cq *send_cq;
	struct urxe_cq *recv_cq;

	/* Requests to send, and their answers: three lines. */
	struct sq sq;
	struct requester req;

	struct urxe_qp_cap cap;
	struct mcast_members groups;
	LIST_HEAD(, urxe_mw) windows; /* of type 2, bound by this QP */

	/* Where these two meet: what lets a packet in or out, and requests to execute. */
	struct urxe_qp_attr attr;
	struct responder resp;
	struct timer gap_timer; /* of the responder: a gap gets its NAK */
	bool block_self_mcast;  /* does not hear what it sends to its own groups */

	/* A line of a packet that is sent, and one of a packet that is received. */
	struct header_template header __attribute__((aligned(URXE_CACHE_LINE)));
	struct predict predict;

	/* Either way; `counters` with the bytes and packets of all. */
	struct timer timer; /* of the requester: RNR wait, or the next of retry.c's */
	struct urxe_rq *rq;
	struct urxe_counters counters; /* this QP's part of the device's */

	struct timer ack_timer; /* of the responder: what came again has its ACK */
	struct pace pace;
	struct cnp cnp;
};

#define QP_LINE(member) (offsetof(struct urxe_qp, member) / URXE_CACHE_LINE)
/* Members that are to be in one line, from the first to the last. */
#define QP_SAME_LINE(a, b) \
	_Static_assert(QP_LINE(a) == QP_LINE(b), #a " and " #b " share a cache line")

QP_SAME_LINE(dev, recv_cq);
QP_SAME_LINE(sq, req.drain_event);
QP_SAME_LINE(req.recv_seq, req.repair);
QP_SAME_LINE(req.rtt, req.missing_due);
QP_SAME_LINE(attr.state, resp.wqe);
QP_SAME_LINE(predict.words, predict.era);
QP_SAME_LINE(timer, counters.event[URXE_EVENT_TX_BYTES]);
QP_SAME_LINE(counters.event[URXE_EVENT_DIRECT_REQUESTS], counters.event[URXE_EVENT_DIRECT_BYTES]);

/* PSNs that a message of length bytes takes. */
static inline uint32_t qp_packets(const struct urxe_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->mtu + 1 : 1;
}

static inline uint32_t requester_outstanding(const struct requester *req)
{
	return (uint32_t)urxe_psn_diff(req->psn, req->una);
}

static inline bool answered(const struct requester *req, uint32_t psn)
{
	uint32_t bit = psn & req->answered_mask;

	return req->answered[bit / 64] >> bit % 64 & 1;
}

/* Makes the next request `cur`; its PSNs begin at the next one to be sent. */
static inline void qp_begin_next_send(struct urxe_qp *qp)
{
	struct sq *sq = &qp->sq;

	sq->cur++;
	if (sq->cur != sq->head)
		sq_wqe(sq, sq->cur)->first_psn = qp->req.psn;
}

/* Tells urxe_output that the QP may have something to send. */
void qp_schedule(struct urxe_qp *qp);
/* The QP's turn has come, or it has nothing to send any more. */
void qp_unschedule(struct urxe_qp *qp);
/* Reports an asynchronous event of the QP to the device's owner. */
void qp_event(struct urxe_qp *qp, enum urxe_async event);
/* Forgets the packets that the responder keeps behind a gap, and stops the gap's timer. */
void qp_clear_gap(struct urxe_qp *qp);
/* Forgets all READ, atomic, FLUSH and ATOMIC WRITE responses that are due. */
void qp_clear_responses(struct urxe_qp *qp);

#endif
