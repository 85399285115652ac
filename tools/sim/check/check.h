/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The invariants of a simulation, one per file. Each function checks what its comment states, and
 * calls world_fail if that is not so. world.c calls them.
 */
#ifndef URXE_SIM_CHECK_CHECK_H
#define URXE_SIM_CHECK_CHECK_H

#include <stdbool.h>

#include <rxe/types.h>

struct endpoint;
struct member;
struct recv_queue;
struct urxe_frame;
struct simcq;
struct simhost;
struct stream;
struct world;

/* A completed atomic on a shared word. */
struct atomic_op {
	uint32_t host;     /* host of the word */
	uint32_t from;     /* QPN of the requester */
	uint64_t original; /* returned value */
	uint64_t add;      /* amount added; 0: a compare-and-swap that failed */
	uint64_t posted, completed;
};

/* For each polled send completion: the stream's requests complete exactly once and in order, with
 * success and the right result, or with an error that check_error accepts. */
void check_completion(struct simhost *host, const struct urxe_wc *wc);
/*
 * For each polled receive completion: the message is whole, and comes once and in order. UC and UD
 * messages may also come twice or late, if the network duplicates or reorders frames.
 */
void check_delivery(struct simhost *host, const struct urxe_wc *wc);
/* For check_completion: the connection's failure explains the error of the request. */
void check_error(struct stream *stream, uint32_t index, uint32_t status);
/* For check_delivery and check_quiet: the receive is flushed, because its QP is in error. */
void check_flushed_recv(struct endpoint *end, const struct urxe_wc *wc);
/* For check_delivery: on UC, a receive of an SRQ ends with an error because the network lost,
 * reordered or duplicated a frame. False: the completion has another reason. */
bool check_given_up(struct endpoint *end, const struct urxe_wc *wc);
/* For each frame that does not reach the host as it was sent: counts it for check_unreliable and
 * check_multicast. */
void check_lost_frame(struct world *world, uint32_t to, const uint8_t *frame, uint32_t len);
/* For each frame that reaches the host as it was sent: counts UC messages that begin. */
void check_first_packet(const struct simhost *to, const uint8_t *frame, uint32_t len);
/* For each asynchronous event: the event may come now. `ctx`: the context of its QP, SRQ or CQ. */
void check_event(struct simhost *host, enum urxe_async event, void *ctx);
/* For each event of a completion queue: the application has requested it, and the newest completion
 * is one for which it comes. */
void check_comp_event(struct simcq *cq);
/* For each polled completion: if an event was requested for it, the event has come. */
void check_told(const struct simcq *cq, const struct urxe_wc *wc);
/* For each completion that the engine reports: it comes from no drained send queue. */
void check_drained(const struct simcq *cq, const struct urxe_wc *wc);
/* At each turn of an application that changes attributes: an RC QP has the attributes that the
 * application has set. */
void check_attributes(const struct endpoint *end);
/*
 * For each re-registration of the host's memory: the region keeps its key, and the engine refuses
 * it only while a window is bound to it. `rc`: the engine's result.
 */
void check_rereg(const struct simhost *host, int rc);
/* For each polled receive of a member: a message comes at most once, unless the network duplicates
 * frames, and only to a member that is in its group, or has left it since the message was sent. */
void check_multicast_delivery(struct member *to, const struct urxe_wc *wc);
/* For each polled send completion of a member: messages complete in order, with success. */
void check_multicast_completion(struct member *member, const struct urxe_wc *wc);
/*
 * At the end: a message has reached each member that was in its group since it was sent, unless the
 * network lost a frame or the member had no receive posted. A member on the sender's host, whose
 * copy does not pass the network, misses a message only if it had no receive posted.
 */
void check_multicast(struct world *world);
/* For each burst of sent frames: each run of urxe_frame.continues fits one UDP GSO packet. */
void check_gso(struct simhost *host, const struct urxe_frame *frames, uint32_t n);
/*
 * For each posted receive request: the queue refuses it (-ENOMEM) if `outstanding` requests, which
 * were there before, fill it, and only then. `rc`: the engine's result, here and below.
 */
void check_post_recv(const struct recv_queue *recv_queue, uint32_t outstanding, int rc);
/*
 * For each resize of an SRQ to `room` requests, before recv_queue.room changes: the engine refuses
 * it (-EINVAL) if the outstanding requests or the limit are more, or `room` is 0, and only then.
 */
void check_srq_resize(const struct recv_queue *recv_queue, uint32_t room, int rc);
/* For each change of an SRQ's limit: the engine refuses (-EINVAL) a limit beyond the queue's size,
 * and no other. */
void check_srq_limit(const struct recv_queue *recv_queue, uint32_t limit, int rc);
/* At each turn of the application: for each SRQ below its limit the event has come, and the engine
 * has the limit that the application has set. */
void check_srqs(const struct simhost *host);
/* After all QPs went to the error state: each QP with an SRQ has had the event LAST_WQE_REACHED. */
void check_last_wqe(const struct simhost *host);
/* Records a completed atomic on a shared word for check_atomics. */
void check_atomics_note(struct stream *stream, uint32_t index, uint64_t original);
/* At the end: the atomics on shared words are linearizable. */
void check_atomics(struct world *world);
/*
 * At the end: memory has the content that the requests produce in their order, or on UC its initial
 * content where a WRITE was lost. All messages of RC have arrived. In a stream with an error, this
 * holds for the requests before the failed one; later ones may or may not have taken effect.
 */
void check_memory(struct world *world);
/*
 * At the end: UC and UD have delivered each message, unless the network lost a frame of it or no
 * receive request was posted. If the network reorders or duplicates, messages may be missing.
 * Connections with a failure are left out.
 */
void check_unreliable(struct world *world);
/* At the end: the counters of the hosts agree with those of the network. */
void check_counters(struct world *world);
/* At the end: no frame, timer or completion is left; a QP in error has flushed each outstanding
 * receive. */
void check_quiet(struct world *world);

#endif
