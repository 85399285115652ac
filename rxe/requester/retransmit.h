/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Retransmission: which packets a requester repeats, and when, after NAKs, missing responses,
 * silence of the peer and timeouts (IBA volume 1, 9.7.5 and 9.7.6; docs/recovery.md). Requester and
 * completer are the callers.
 *
 * Repair: the retransmission from req.una, the oldest unacknowledged PSN, after a NAK, a timeout or
 * a probe. Probe: a repair before the local ACK timeout, of 1 to 16 packets, or of all after an
 * absence. Absence: the time in which a host was frozen, or moved to another place.
 */
#ifndef URXE_REQUESTER_RETRANSMIT_H
#define URXE_REQUESTER_RETRANSMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Default for the shortest silence of the peer before a probe, ns. */
#define RETRANSMIT_PROBE_NS 20000
/* Number of probes of a silent peer, at intervals that double; after them the timeout follows. */
#define RETRANSMIT_PROBES 6
/* Most packets of a probe. */
#define RETRANSMIT_PROBE_SPAN 16

struct send_wqe;

/* Resets the window and the retransmission state. The caller has set una to the next PSN. */
void retransmit_init(struct urxe_qp *qp);

/* Moves req.resend.psn past answered PSNs, and returns the request of the packet at that PSN, which
 * has to be sent again. NULL: no packet has to be sent again. */
const struct send_wqe *retransmit_next(struct urxe_qp *qp);
/* The packet at req.resend.psn, which has `span` PSNs, was sent again: moves req.resend.psn on. */
void retransmit_packet_resent(struct urxe_qp *qp, uint32_t span);
/* Any request packet was sent, new or again: starts the ACK timeout unless it runs, with a rate
 * limit always. Sets the time of the next probe anew; after an absence, to no later time. */
void retransmit_packet_sent(struct urxe_qp *qp);

/*
 * After false from retransmit_sequence_nak, retransmit_implied_nak or retransmit_timer the caller
 * ends the oldest request with URXE_WC_RETRY_EXC_ERR.
 */

/* Whether the caller ignores a NAK of req.una because it must be a copy of the last NAK: since that
 * NAK una was not sent again, or less than half the shortest round trip ago. */
bool retransmit_is_repeated_nak(const struct urxe_qp *qp);
/* A sequence NAK arrived: the peer misses req.una. Makes una due again, and following packets if
 * the peer missed some of the last repair or drops packets behind a gap. False: no retry is
 * left. */
bool retransmit_sequence_nak(struct urxe_qp *qp);
/* An RNR NAK arrived: sends req.una again after wait_ns, and also the following packets unless the
 * peer has kept these packets. */
void retransmit_rnr_nak(struct urxe_qp *qp, uint64_t wait_ns);
/* Ends the wait of retransmit_rnr_nak early, if it runs: the packets are due now. */
void retransmit_end_rnr_wait(struct urxe_qp *qp);
/* An implied NAK (IBA 9.7.6.1.2): a later response shows that READ or atomic responses are missing.
 * Requests each missing response again once, after urxe_dev_attr.reorder_ns. With go-back-N: sends
 * all outstanding packets again, at once, but only once until una moves or the ACK timeout expires.
 * False: no retry is left. */
bool retransmit_implied_nak(struct urxe_qp *qp);
/*
 * Called after retransmit_implied_nak, for an RNR NAK or a sequence NAK of req.acked: the peer has
 * executed the requests before req.acked, but responses to them are missing. Sends again, at once,
 * all packets from the first missing response to the refused packet, and the following packets
 * unless the peer has kept these. Leaves out packets before req.resent_end, which were sent again
 * already. Uses up no retry, and does not wait for the RNR timer: if the peer still refuses the
 * packet, its next NAK comes behind the responses. No effect with go-back-N, because
 * retransmit_implied_nak repeats the packets.
 */
void retransmit_later_nak(struct urxe_qp *qp);
/* An ACK arrived; called after retransmit_progress. If the ACK covers only the packets of a repair
 * after a sequence NAK, the peer lacks the following packets: makes them due again. */
void retransmit_ack_arrived(struct urxe_qp *qp);
/*
 * Whether a response that arrives now answers a probe's or timeout's retransmission of una. That
 * retransmission must be at least half the least round trip ago, and at most a round trip or 0.5
 * ms, whichever is longer: another response may be that to the original packet. False while no
 * round trip is known. The caller knows that a probe was sent or a timeout expired since una moved.
 */
bool retransmit_is_answer_to_repetition(const struct urxe_qp *qp);
/*
 * A response moved req.una: notes what that tells about peer and window, and restarts the timers.
 * If the response answers exactly the packets of a repair, and packets sent before the repair are
 * still outstanding, the next probe follows after a round trip, but at least 0.5 ms, if that is
 * sooner than usual. If una moves or a new packet is sent meanwhile, the probe's time is set anew.
 */
void retransmit_progress(struct urxe_qp *qp);

/*
 * The peer announces itself after an absence. If a probe is unanswered, or a local ACK timeout
 * expired since una moved, sends all outstanding packets again, and begins the series of probes
 * anew. Else acts as retransmit_after_absence. Uses up no retry. Each call repeats the packets at
 * most once, so the caller limits the rate. No effect with go-back-N. No effect after eight
 * announcements since una moved or a timeout expired: with a rate limit, each repetition starts the
 * ACK timeout anew, so that the timeout might never expire.
 */
void retransmit_peer_announced(struct urxe_qp *qp);
/*
 * This device was absent: sends all outstanding packets again if the peer has been silent for a
 * round trip and for 0.5 ms of this device's time. Else sends them when that time is over, unless
 * the peer acknowledges some before. With local ACK timeout 0 any peer counts as silent.
 */
void retransmit_after_absence(struct urxe_qp *qp);

/*
 * For a requester that sends nothing new until all packets before `end` are acknowledged; `end` is
 * req.psn, or the first PSN of a request. Sends the last of these packets again, with AckReq. No
 * effect if the packets are acknowledged, if the last one is the newest packet and has asked for an
 * acknowledgement, and during an RNR wait or another retransmission.
 */
void retransmit_for_ack(struct urxe_qp *qp, uint32_t end);

/* The QP's retry timer (urxe_qp.timer) has fallen due: ends the RNR wait, asks for missing
 * responses, probes the peer, or sends all outstanding packets again after the ACK timeout. False:
 * no retry is left. */
bool retransmit_timer(struct urxe_qp *qp);

#endif
