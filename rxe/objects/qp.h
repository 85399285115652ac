/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: the state that requester, responder and recovery keep in them. */
#ifndef URXE_OBJECTS_QP_H
#define URXE_OBJECTS_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/psn.h>
#include <rxe/rxe.h>

#include "congestion/rtt.h"
#include "objects/qp_state.h"
#include "objects/sq.h"
#include "util/timer.h"
#include "wire/header_fields.h"

/* By its answers so far, the peer keeps requests that follow a missing one (PEER_SELECTIVE), or
 * drops them. */
enum peer_kind { PEER_UNKNOWN, PEER_SELECTIVE, PEER_GO_BACK_N };

/* PSNs [psn, end) will be sent again, except those that are answered. psn passes end when the
 * requester repeats a whole READ request that reaches beyond end; the next retransmit_next sets psn
 * to end. */
struct resend {
	uint32_t psn;
	uint32_t end;
	uint32_t wqe; /* index in the send queue of the request that has psn, or of an earlier
			 request */
};

/* The retransmission that is in progress for the oldest missing PSN. */
struct repair {
	bool open;
	bool by_nak;           /* a sequence NAK of the peer started it */
	uint8_t announcements; /* number of the peer's announcements heeded since una moved or a
				  timeout expired (retransmit_peer_announced). urxe_state_save
				  clears it */
	uint32_t high;         /* PSN after the newest one that the repair has sent */
	uint32_t frontier;     /* requester.psn when the repair started; the repair ends when una
				  reaches it */
};

/* Result of the last request that the copy transport tried. */
enum copy_chance { COPY_UNTRIED, COPY_WORKS, COPY_FAILS };

/* State of the copy transport, with the proof that the connection works in packets. Not saved:
 * urxe_state_save clears it. */
struct copy_proof {
	uint32_t proof; /* dev->copy_generation at the last acknowledgement; 0 = none */
	/*
	 * Version of the peer's QP in the peer's table at that acknowledgement; another version
	 * voids the proof. 0 = the table did not have the QP then, so the proof's first use voids
	 * it.
	 */
	uint32_t version;
	uint8_t chance; /* enum copy_chance */
	/* Consecutive requests that the program has posted before it had polled the completions of
	 * all earlier ones; at most 255. */
	uint8_t streamed;
	uint8_t packets; /* requests that went in packets because of in_packets; at each 16th the
			    requester calls urxe_copy_ops.polls_or_wake */
	bool in_packets; /* short requests go in packets, because the peer polls for packets */
};

/*
 * Requester and completer: PSNs [una, psn) are sent and not acknowledged.
 *
 * The first 32 bytes share a cache line with the send queue. A QP with nothing to send reads only
 * these; each packet needs two more lines.
 */
struct requester {
	uint32_t psn;   /* of the next new packet; in request `cur` of the queue */
	uint32_t una;   /* oldest unacknowledged PSN; in request `tail` */
	uint32_t acked; /* all PSNs before it are acknowledged, except READs and atomics; after the
			   response of one of these, una may be one PSN ahead */
	uint32_t rd_atomic; /* outstanding requests that use a resource of the responder */
	struct resend resend;
	uint8_t error; /* enum urxe_wc_status of request error_wqe, once it is the oldest; 0 = none
			*/
	bool held;     /* the next packet waits for the rate limit */
	bool rnr_wait; /* the timer runs for an RNR NAK */
	bool drain_event; /* SQD: the owner waits for the drained event */

	uint32_t recv_seq; /* number of requests posted that use up a receive request of the peer */
	struct credit credit;
	uint8_t retries;     /* left after timeouts, sequence NAKs and missing responses */
	uint8_t rnr_retries; /* RNR NAKs that are left; 7: without end */
	/* Mostly for retransmit.c and window.c of requester/. urxe_state_save saves most of these
	 * members. */
	bool nak_seen;  /* a sequence NAK or an RNR NAK named una */
	bool missing;   /* a response was found missing since una moved or a timeout expired */
	bool probe_all; /* the device was absent after una last moved, or the peer announced
			  itself: the next probe sends all outstanding packets */
	uint8_t naks;   /* sequence NAKs since una moved; urxe_state_save sets it to 1 if nak_seen,
			   else to 0 */
	bool window_lossy;    /* a packet before window_mark was lost */
	bool window_may_grow; /* the next window without a loss enlarges `window` */
	uint8_t probes;       /* sent since the latest of: una moved, a timeout, an announcement */
	uint8_t peer;         /* enum peer_kind */
	bool remote : 1;      /* RC without go-back-N, with a peer on another host: the share of
				 window.h applies */
	bool unacked : 1;     /* dev->unacked_qps counts the QP */
	bool timed_out : 1;   /* a local ACK timeout expired since una moved; false with
				 go-back-N. urxe_state_save clears it */
	bool asks_ack : 1;    /* the packet before psn is a READ or an atomic, or has AckReq.
				 urxe_state_save clears it */
	uint8_t frame_span;   /* PSNs of the newest frame, up to 255; more than 1: a payload
				 reference. urxe_state_save clears it */
	uint32_t window;      /* packets that may be outstanding */
	uint32_t window_mark; /* psn at the last loss, or when una last reached window_mark */
	uint32_t resent_end;  /* PSNs before it were already sent again, if their responses were
				 missing or the peer had refused them */
	struct copy_proof copy;
	struct repair repair;

	struct rtt rtt;
	uint64_t timeout_due, probe_due, missing_due;

	/* The members below are read and written only after a loss, and for READs and atomics. */
	uint64_t *answered; /* bit psn & answered_mask: this READ or atomic response is in place */
	uint32_t answered_mask;
	uint32_t error_wqe; /* index of the request that ends in `error` */
	uint64_t una_sent; /* when una was last sent again, ns; 0 = not since the last NAK of una */
	uint32_t plain;    /* packets to send without payload references, after a loss */
	uint32_t plain_after; /* what the last loss set `plain` to; the next one doubles it */
	bool referenced;      /* the QP is in dev->referencing */
	bool after_rnr;       /* the retransmission follows an RNR NAK, and may use references */
	bool sent_to_group;   /* UD: the newest packet is for a multicast group */
	uint8_t streak;     /* consecutive answers that stop at the end of a repair; PEER_GO_BACK_N:
			       sequence NAKs since the peer counts as such */
	uint8_t probe_span; /* packets of the last probe */
};

/* RESP_UNKNOWN: the HCA that executed the QP before may have begun a message (responder/resume.h).
 */
enum resp_message { RESP_NONE, RESP_SEND, RESP_WRITE, RESP_UNKNOWN };

/* What has happened since the responder executed the newest packet of the message in progress. */
enum resp_since_newest {
	RESP_CAME_AGAIN = 1, /* the peer has sent an earlier request again */
	RESP_ANSWERED = 2,   /* an ACK or a NAK has acknowledged the packet */
};

/* Value of responder.ack_msn, not an MSN: no ACK is sent, because the PSN of the last ACK is so old
 * that the peer would take it for a future one. Also after a take-over from an HCA, when the engine
 * does not know the MSN. */
#define RESP_ACK_PAST UINT32_MAX

/* A part of a READ that the peer asks for again. */
struct resp_repeat {
	uint32_t psn;
	uint32_t length; /* bytes */
};

/* Repeated parts of one READ that wait while another part is being sent. */
#define RESP_REPEATS 4

enum resp_resource_kind { RES_READ, RES_ATOMIC, RES_FLUSH, RES_ATOMIC_WRITE };

/* A READ, atomic, FLUSH or ATOMIC WRITE request, kept so that a duplicate can be answered
 * (IBA 9.7.5.1.5). */
struct resp_resource {
	uint8_t kind;  /* enum resp_resource_kind */
	bool kept;     /* the slot holds a request */
	bool pending;  /* a response is due */
	bool repeated; /* the response that is due answers a duplicate request */
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t rkey;
	uint32_t length; /* READ: bytes */
	uint64_t va;
	uint64_t original; /* atomic: value before the operation */
	uint32_t msn;
	/* The response in progress: the original one, or a part of it. */
	uint32_t start_psn;
	uint32_t next_psn;
	uint32_t end_psn;
	uint32_t end; /* offset in the READ's data of the byte after the last one */
	/* Parts that the responder sends after the response in progress. */
	struct resp_repeat repeats[RESP_REPEATS];
	uint8_t n_repeats;
};

/* State of a QP that an HCA has executed, and that the engine executes now (responder/resume.h). */
struct resume {
	uint32_t psn;  /* expected PSN of the HCA at the take-over: no resource is kept for READs
			  before it */
	uint32_t next; /* RESP_UNKNOWN, placing: PSN of the SEND's next packet */
	bool placing; /* RESP_UNKNOWN: a SEND is being placed that may be the message in progress */
};

/* Each packet needs the first 40 bytes, up to `wqe`. */
struct responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	/* PSN and MSN of the next ACK: those of the newest executed request that an ACK answers, or
	 * of the packet before that request (ack_all_but_newest). ack_msn is RESP_ACK_PAST if
	 * ack_psn is too old for an ACK. */
	uint32_t ack_psn, ack_msn;
	uint8_t message; /* enum resp_message in progress */
	bool has_wqe;    /* wqe is a receive request that is taken and not completed */
	/* A NAK of the expected PSN is due or was sent, so packets behind that PSN cause no other
	 * one. False after the NAK of resp_repeat_and_nak, which the peer may ignore. */
	bool nak_sent;
	bool ack_due;
	uint8_t nak;  /* syndrome of the NAK that is due; 0 = none */
	bool in_gap;  /* `gap` is in use: a request before received ones is missing, psn_gap_suspect
			 assumes that one is missing, or the expected request is kept for later */
	bool silent;  /* since silent_since, a duplicate request waits for its ACK */
	bool starved; /* the last ACK told the peer of 0 credits, or an RNR NAK was sent */
	uint16_t res_pending; /* number of `resources` that are pending */
	bool resumed; /* an HCA has executed messages that the engine did not count: `resume` */
	uint8_t since_newest; /* enum resp_since_newest, flags; 0 unless a SEND or WRITE is in
				 progress */
	uint32_t offset;      /* bytes of the message received */
	const struct recv_wqe *wqe;

	struct recv_wqe *copy; /* buffer for a SRQ's request; NULL: the QP has its own queue */
	struct {
		uint64_t va;
		uint32_t rkey;
		uint32_t length;
	} write;
	bool comm_est;       /* URXE_ASYNC_COMM_EST was reported */
	uint8_t n_resources; /* a power of two, or 0 */
	uint32_t nak_psn;
	uint64_t silent_since;
	struct resp_resource *resources; /* ring of n_resources */
	uint32_t res_oldest;             /* slot of the oldest one, which the next one replaces */
	uint32_t res_next; /* slot at which the search for a pending resource begins: no older one
			      is pending */
	struct psn_gap gap;
	struct resume resume;
};

/* Ethernet, network and UDP headers of a connected QP's packets, with empty length fields. */
struct header_template {
	uint32_t ipv4_sum; /* sum of the IPv4 header's 16-bit words, for its checksum */
	uint8_t l3;        /* offset of the network header */
	uint8_t len;
	uint8_t net;    /* enum urxe_net */
	bool omit_icrc; /* packets get no ICRC: they stay on this host
			   (urxe_dev_attr.omit_local_icrc) */
	uint8_t bytes[ETH_LEN + VLAN_LEN + L3_MAX_LEN];
};

/* timer.kind of urxe_qp.timer, gap_timer, ack_timer and pace.timer. */
enum { TIMER_RETRY, TIMER_GAP, TIMER_ACK, TIMER_PACE };

/*
 * With many QPs, each cache line that a packet needs is a cache miss. So the members that packets
 * usually need are next to each other.
 */
struct urxe_qp {
	/* Members that all operations use. */
	struct urxe_dev *dev __attribute__((aligned(URXE_CACHE_LINE)));
	void *ctx;
	uint32_t qpn;
	uint32_t pd;
	uint16_t mtu; /* path MTU in bytes */
	uint8_t type; /* enum urxe_qp_type */
	bool sq_sig_all : 1;
	bool offloaded : 1; /* the HCA executes the requests (offload/hooks.h) */
	bool stopping : 1;  /* offloaded: the HCA's QP is in the error state, to give back its
			       receive requests before the engine takes over (device/take_over.c) */
	bool uncounted : 1; /* offloaded: the peer may WRITE, READ or use atomics, so completions do
			       not tell how many messages it has sent */
	/* Of the HCA's part (objects/offload_objects.h): */
	bool calling : 1;    /* an operation on the HCA's QP waits (rxe/offload.h) */
	bool orphaned : 1;   /* offload_end_call destroys the HCA's QP after the operation */
	bool resetting : 1;  /* the operation that waits is the transition to RESET */
	bool hca_failed : 1; /* offloaded: the HCA has been told of the error state */
	bool queued;         /* in dev->ready */
	bool paced;          /* a rate limit may apply */
	bool cnp_due;
	/* urxe_state_save clears both members. */
	bool peer_gso : 1; /* the peer receives UDP GSO packets (wire/gso_run.h) */
	uint8_t turn : 5;  /* place among the frames of two turns: 16 of READ responses, then 16 of
			      requests (output_in_turn of device/device.c) */
	TAILQ_ENTRY(urxe_qp) ready_link;
	struct urxe_cq *send_cq;
	struct urxe_cq *recv_cq;

	/* Members of the requester: three cache lines. */
	struct sq sq;
	struct requester req;

	struct urxe_qp_cap cap;
	struct mcast_members groups;
	LIST_HEAD(, urxe_mw) windows; /* of type 2, bound by this QP */

	/* Members of the responder, and the attributes that both directions check. */
	struct urxe_qp_attr attr;
	struct responder resp;
	struct timer gap_timer; /* responder: the NAK of a gap is due */
	bool block_self_mcast;  /* does not receive its own datagrams to its groups */

	/* For both directions: checks of received packets read `net`. IPv4 needs one cache line. */
	struct header_template header __attribute__((aligned(URXE_CACHE_LINE)));

	/* For both directions; `counters` begins with packets and bytes. `timer` runs for the
	 * requester's RNR wait, or for the earliest deadline of retransmit.c. */
	struct timer timer __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_rq *rq;
	struct urxe_counters counters; /* this QP's part of the device's */

	struct timer ack_timer; /* responder: the ACK of repeated requests is due */
	struct pace pace;
	struct cnp cnp;
	LIST_ENTRY(urxe_qp) reference_link;     /* in dev->referencing */
	void *hca;                              /* the HCA's QP with the same QPN; NULL: none */
	const struct urxe_offload_ops *hca_ops; /* of `hca` */
	uint32_t returned; /* stopping: number of receive requests that the HCA gave back */
	bool drained;      /* offloaded, with a SRQ: the HCA takes no more receive requests */
	bool last_wqe;     /* URXE_ASYNC_QP_LAST_WQE_REACHED was told since the last RESET */
};

#define QP_LINE(member) (offsetof(struct urxe_qp, member) / URXE_CACHE_LINE)
/* Asserts that the members from a to b are in one cache line. */
#define QP_SAME_LINE(a, b) \
	_Static_assert(QP_LINE(a) == QP_LINE(b), #a " and " #b " share a cache line")

QP_SAME_LINE(dev, recv_cq);
QP_SAME_LINE(sq, req.drain_event);
QP_SAME_LINE(req.recv_seq, req.repair);
QP_SAME_LINE(req.rtt, req.missing_due);
QP_SAME_LINE(attr.state, resp.wqe);
QP_SAME_LINE(timer, counters.event[URXE_EVENT_TX_BYTES]);
QP_SAME_LINE(counters.event[URXE_EVENT_COPY_REQUESTS], counters.event[URXE_EVENT_COPY_BYTES]);

/* PSNs that a message of length bytes takes. */
static inline uint32_t qp_packets(const struct urxe_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->mtu + 1 : 1;
}

static inline uint32_t requester_outstanding(const struct requester *req)
{
	return (uint32_t)urxe_psn_diff(req->psn, req->una);
}

/* Flips req.unacked, and adds the QP to dev->unacked_qps or subtracts it. Only qp_update_unacked
 * calls this function. */
void qp_change_unacked(struct urxe_qp *qp);

/*
 * After a local ACK timeout the peer counts as silent if so many retries were used up since una
 * moved. With fewer, QPs whose packets a full receive ring drops would count as silent too. The
 * other QPs would then take over their share of the window, and fill the ring again.
 */
#define SILENT_TIMEOUTS 4

/*
 * Whether packets of the QP may be in receive rings on the way to the peer. A QP that waits after
 * an RNR NAK or whose peer is silent has none there, and must not take a share of the window
 * (requester/window.h) from other QPs.
 */
static inline bool qp_has_packets_on_way(const struct urxe_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->remote && req->una != req->psn && !qp->offloaded && !req->rnr_wait &&
	       !(req->timed_out && req->retries + SILENT_TIMEOUTS <= qp->attr.retry_cnt);
}

/* Makes dev->unacked_qps count the QP exactly if qp_has_packets_on_way is true. Called after each
 * change of a member that qp_has_packets_on_way reads. */
static inline void qp_update_unacked(struct urxe_qp *qp)
{
	if (qp_has_packets_on_way(qp) != qp->req.unacked)
		qp_change_unacked(qp);
}

/* Takes the QP out of dev->unacked_qps. The caller resets or destroys the QP. */
static inline void qp_end_unacked(struct urxe_qp *qp)
{
	qp->req.remote = false;
	qp_update_unacked(qp);
}

static inline bool answered(const struct requester *req, uint32_t psn)
{
	uint32_t bit = psn & req->answered_mask;

	return req->answered[bit / 64] >> bit % 64 & 1;
}

static inline void set_answered(struct requester *req, uint32_t psn, bool value)
{
	uint32_t bit = psn & req->answered_mask;
	uint64_t *word = &req->answered[bit / 64];

	*word = (*word & ~(UINT64_C(1) << bit % 64)) | (uint64_t)value << bit % 64;
}

/* Moves the send queue's `cur` on by one. If the queue has a request there, the request's PSNs
 * begin at req.psn. */
static inline void qp_begin_next_send(struct urxe_qp *qp)
{
	struct sq *sq = &qp->sq;

	sq->cur++;
	if (sq->cur != sq->head)
		sq_wqe(sq, sq->cur)->first_psn = qp->req.psn;
}

/* Tells urxe_output that the QP may have something to send. */
void qp_schedule(struct urxe_qp *qp);
/* Tells urxe_output to begin with this QP. */
void qp_schedule_first(struct urxe_qp *qp);
/* Takes the QP out of dev->ready: urxe_output now sends for it, or it has nothing more to send. */
void qp_unschedule(struct urxe_qp *qp);
/* Reports an asynchronous event of the QP to the device's owner. */
void qp_event(struct urxe_qp *qp, enum urxe_async event);
/* Forgets the packets that the responder keeps behind a gap, and stops the gap's timer. */
void qp_clear_gap(struct urxe_qp *qp);
/* Cancels all READ, atomic, FLUSH and ATOMIC WRITE responses that are due. */
void qp_clear_responses(struct urxe_qp *qp);
/* Publishes the QP in the device's copy table if the engine executes requests of its peer: RC, in
 * RTR to SQD, not offloaded. Else withdraws it from the table. */
void qp_publish_rights(const struct urxe_qp *qp);

#endif
