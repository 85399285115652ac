/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface between the engine and an HCA that executes queue pairs in the engine's place.
 *
 * The owner of the device (a front end) calls the functions of rxe.h and does not know which of the
 * two executes a queue pair. The engine keeps the objects, checks each call, and holds posted
 * requests until they complete. It calls the functions below for objects that the HCA has too, and
 * for requests of queue pairs that the HCA executes ("offloaded" queue pairs). A queue pair that is
 * not offloaded sends and receives frames under the same QPN and with the same keys.
 *
 * A queue pair or region that is created while the device has an HCA gets the HCA's QPN or key,
 * unless the HCA refuses the object or the owner chooses the number. Queue pairs with a shared
 * receive queue and UD queue pairs are offloaded when they leave RESET for INIT; the others at the
 * transition to RTR, if `takes` agrees. A transition to RESET ends the offload.
 *
 * The engine calls the operations only within calls of its owner, which executes one at a time, so
 * the implementation needs no lock of its own. The operations must not call the engine, except
 * qp_modify at the transition to INIT. Functions that return int return 0 or a negative errno
 * value. Keys, QPNs and lengths are in host byte order.
 *
 * Operations marked "waits" may take long. If the owner permits it, they release the owner's lock
 * until the HCA has answered. Meanwhile other threads of the owner may call the engine. The owner
 * delays or refuses calls that destroy the object, its PD or queues that it uses, and calls that
 * modify, query, attach or detach the same queue pair. It may call urxe_offload_unset(): then the
 * waiting call destroys the HCA's queue pair when it returns. While a transition to RESET waits,
 * the HCA gets no requests of the queue pair.
 */
#ifndef URXE_RXE_OFFLOAD_H
#define URXE_RXE_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

struct urxe_dev;
struct urxe_cq;
struct urxe_rq;
struct urxe_qp;
struct urxe_mr;
struct urxe_mr_attr;
struct urxe_rq_attr;
struct urxe_qp_init;

/* The HCA's objects that a queue pair uses; NULL: no shared receive queue. */
struct urxe_offload_queues {
	void *send_cq;
	void *recv_cq;
	void *srq;
};

struct urxe_offload_ops {
	/*
	 * Registers a region with the HCA. *key: its lkey, which is also its rkey. -EOPNOTSUPP: the
	 * HCA cannot have such a region; -EFAULT: Linux does not pin its memory. Then the region is
	 * the engine's alone. urxe_mr_reg returns any other error.
	 */
	int (*mr_reg)(void *ctx, const struct urxe_mr_attr *attr, void **mr, uint32_t *key);
	void (*mr_dereg)(void *mr);

	/* Waits for the HCA. Called before qp_create of the first queue pair that uses the CQ; an
	 * error has the effect of an error of qp_create. The implementation passes `cq` to
	 * urxe_offload_cq_event. */
	int (*cq_create)(void *ctx, struct urxe_cq *cq, void **hca_cq);
	void (*cq_destroy)(void *hca_cq);
	/* Requests one urxe_offload_cq_event, as ibv_req_notify_cq(3) does. */
	void (*cq_arm)(void *hca_cq, bool solicited_only);

	/* Waits for the HCA. The implementation passes `srq` to urxe_offload_srq_event. After an
	 * error the shared receive queue is the engine's alone. */
	int (*srq_create)(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *srq,
			  void **hca_srq);
	void (*srq_destroy)(void *hca_srq);
	/* Both wait for the HCA. After srq_resize the owner calls urxe_offload_refill(). */
	int (*srq_set_limit)(void *hca_srq, uint32_t limit);
	int (*srq_resize)(void *hca_srq, uint32_t max_wr);

	/*
	 * Waits for the HCA. Creates a queue pair with init's type, capacity and PD. *qpn: the
	 * HCA's choice. After an error, or if the device has *qpn already, the queue pair is the
	 * engine's alone. But with a shared receive queue that the HCA has, and that no take-over
	 * has stopped, urxe_qp_create fails: with the error (-ENOMEM for -ENOSPC), or with
	 * -EOPNOTSUPP if the device has *qpn already.
	 */
	int (*qp_create)(void *ctx, const struct urxe_qp_init *init,
			 const struct urxe_offload_queues *queues, void **hca_qp, uint32_t *qpn);
	void (*qp_destroy)(void *hca_qp);
	/* Whether the HCA, and not the engine, executes a connection with these attributes. Reads
	 * only attr->path, path_mtu and dest_qpn. */
	bool (*takes)(void *hca_qp, const struct urxe_qp_attr *attr);
	/*
	 * Waits for the HCA. Attributes as of urxe_qp_modify, which has checked them. After a
	 * transition to RESET, and after qp_destroy, no earlier request of the queue pair is
	 * completed any more. Those of a shared receive queue are completed before the transition
	 * to INIT returns: this function may call urxe_offload_complete and
	 * urxe_offload_srq_complete then. -EOPNOTSUPP at the transition to INIT: the HCA cannot
	 * execute the queue pair. Without a shared receive queue, the engine executes it.
	 */
	int (*qp_modify)(void *hca_qp, const struct urxe_qp_attr *attr, uint32_t mask);
	/* Moves the HCA's queue pair to the error state, without waiting for the HCA, because the
	 * engine is within another operation. After an error the engine calls qp_destroy. */
	int (*qp_fail)(void *hca_qp);
	/* Waits for the HCA. Sets state, rq_psn, sq_psn and sq_draining of *attr; leaves *attr as
	 * it is if the HCA does not report them. */
	void (*qp_query)(void *hca_qp, struct urxe_qp_attr *attr);
	/* Both wait for the HCA. */
	int (*mcast_attach)(void *hca_qp, const struct urxe_gid *gid);
	void (*mcast_detach)(void *hca_qp, const struct urxe_gid *gid);

	/*
	 * Hands n requests to the HCA, in order. Each is to be completed by urxe_offload_complete
	 * or, of a shared receive queue, urxe_offload_srq_complete, whether or not
	 * URXE_SEND_SIGNALED is set. Returns the number that the HCA has taken. If this is less
	 * than n, *rc tells why the next request was not taken. -ENOMEM: the HCA's queue is full at
	 * the moment, and the engine tries again after a completion. If the HCA has no send request
	 * of the queue pair, no completion would follow, and -ENOMEM counts as a refusal. Other
	 * errors: the HCA refuses the request. Then a send request fails with
	 * URXE_WC_LOC_QP_OP_ERR, the queue pair of a receive request with URXE_ASYNC_QP_FATAL, and
	 * a receive request of a shared receive queue is dropped.
	 */
	uint32_t (*post_send)(void *hca_qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc);
	uint32_t (*post_recv)(void *hca_qp, const struct urxe_recv_wr *wrs, uint32_t n, int *rc);
	uint32_t (*post_srq_recv)(void *hca_srq, const struct urxe_recv_wr *wrs, uint32_t n,
				  int *rc);
};

/*
 * Sets the HCA of a device that has none; after urxe_offload_unset it may be called again. Queue
 * pairs, regions and shared receive queues that are created from now on are the HCA's too, unless
 * the owner chooses their QPN or key, or sets urxe_rq_attr.alone. A queue pair whose QPN the owner
 * chose cannot use a shared receive queue of the HCA (-EOPNOTSUPP). Memory windows cannot be
 * created then (-EOPNOTSUPP). Fast registrations are the engine's alone. While a PD has other
 * regions that are the engine's alone, its new connections without a shared receive queue of the
 * HCA are not offloaded, and its new shared receive queues are the engine's alone. A recording of
 * the device (rxe/record.h) ends.
 */
void urxe_offload_set(struct urxe_dev *dev, const struct urxe_offload_ops *ops, void *ctx);
/*
 * The HCA is gone: destroys all its objects by the functions of urxe_offload_ops, and calls none of
 * them later. Offloaded queue pairs enter the error state with URXE_ASYNC_QP_FATAL, and their
 * requests are flushed. The requests of shared receive queues that the HCA had are lost
 * (URXE_ASYNC_SRQ_ERR). Regions become the engine's alone.
 */
void urxe_offload_unset(struct urxe_dev *dev);
/* Whether the HCA has the queue pair, too: the HCA may execute the requests from RTR on. */
bool urxe_offload_has_qp(const struct urxe_qp *qp);
/* Whether the HCA, and not the engine, would use the address in *attr, if urxe_qp_modify were
 * called now with these arguments. The owner calls it when only the HCA can reach that address. */
bool urxe_offload_takes(const struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask);
/* Whether the HCA executes the requests of the queue pair. */
bool urxe_qp_offloaded(const struct urxe_qp *qp);
/* Whether all queue pairs are offloaded (urxe_qp_offloaded), so that the engine gets no packets.
 * False if the device has no queue pair. */
bool urxe_offload_all(const struct urxe_dev *dev);
/*
 * As urxe_mr_reg, for a region that the owner has registered with the HCA itself, because that
 * takes long. mr: what mr_reg would have set, or NULL: the region is the engine's alone. key: of
 * the HCA. -EEXIST: the device has that key already. After an error the owner deregisters `mr`.
 */
int urxe_offload_mr_reg(struct urxe_dev *dev, const struct urxe_mr_attr *attr, void *mr,
			uint32_t key, struct urxe_mr **region);
/*
 * As urxe_mr_rereg, for an owner that has registered the new memory as for urxe_offload_mr_reg. The
 * region gets the new key, and the engine deregisters the HCA's region of the old memory. -EBUSY: a
 * memory window is bound to the region.
 */
int urxe_offload_mr_rereg(struct urxe_mr **region, const struct urxe_mr_attr *attr, void *mr,
			  uint32_t key);
/* Whether the HCA has the region, too. */
bool urxe_offload_has_mr(const struct urxe_mr *mr);
/* Totals of the regions that the HCA has. */
struct urxe_offload_memory {
	uint64_t regions;
	uint64_t pages; /* sum of urxe_offload_pages(); memory that two regions have counts twice */
};
struct urxe_offload_memory urxe_offload_memory(const struct urxe_dev *dev);
/* An upper bound of the number of 4096-byte pages that a region of `length` bytes touches. */
uint64_t urxe_offload_pages(uint64_t length);
/*
 * The region becomes the engine's alone: the owner withdraws memory from it. After the call the HCA
 * accesses none of the memory; requests with the key end at the HCA in errors.
 */
void urxe_offload_withdraw(struct urxe_mr *mr);
/* Calls urxe_ops.written for all memory that the HCA may write to, because the HCA does not report
 * its own writes. */
void urxe_offload_report_writes(struct urxe_dev *dev);
/* If the HCA executes the queue pair of this receive queue, or has the SRQ, calls urxe_ops.refill
 * and hands the receive requests to the HCA. The owner calls it after the program has posted
 * receives. */
void urxe_offload_refill(struct urxe_rq *rq);
/* As urxe_qp_query, with rq_psn, sq_psn and sq_draining of the HCA. The state is URXE_QPS_ERR, too,
 * if the HCA's queue pair has failed; the engine's own enters that state with the HCA's next
 * completion or event. May take a system call. */
void urxe_offload_query(struct urxe_qp *qp, struct urxe_qp_attr *attr, struct urxe_qp_init *init);

/* --- The engine takes over. */

enum urxe_offload_reason {
	/* Reasons of -EOPNOTSUPP: */
	/* qp_query returns the PSNs of the last modification, as some drivers do, not the current
	 * ones. */
	URXE_OFFLOAD_STALE_PSN = 1,
	/* No PSN has changed since the modification, so the engine cannot tell whether qp_query
	 * returns current PSNs. */
	URXE_OFFLOAD_UNPROVEN_PSN,
	URXE_OFFLOAD_NO_NEXT_HOP, /* urxe_path_has_next_hop() is false for the path to the peer */
	/* Reasons of -EAGAIN: */
	URXE_OFFLOAD_REQUESTS,  /* send requests, or a verbs call, have not ended at the HCA */
	URXE_OFFLOAD_BUSY_PEER, /* a peer has sent requests since the last call */
	URXE_OFFLOAD_RECEIVES,  /* the HCA has not given back all receive requests */
	/* Set by owners only, never by urxe_offload_take_over: */
	/* -EAGAIN: the daemon does not pass the packets of the HCA's queue pairs to the engine
	 * yet. */
	URXE_OFFLOAD_UPLINK,
	/* -EOPNOTSUPP: the daemon does not know the QPN, so it passes no packets of the queue
	 * pair. */
	URXE_OFFLOAD_NUMBER_UNKNOWN,
};

/* Why urxe_offload_take_over has not succeeded. */
struct urxe_offload_refusal {
	enum urxe_offload_reason reason;
	uint32_t qpn; /* 0: no particular queue pair */
};

/*
 * The engine goes on with all queue pairs that the HCA executes, under the same QPNs and keys.
 * Afterwards the device can be saved (rxe/state.h), or lose its HCA. From the first call on the HCA
 * gets no new send requests, and new queue pairs and shared receive queues are the engine's. But
 * new queue pairs of a shared receive queue that the HCA has are the HCA's until the HCA's queue
 * pairs stop.
 *
 * -EAGAIN: not yet; *refusal has the reason, which is never URXE_OFFLOAD_BUSY_PEER with `force`.
 * An attempt begins with the first call, or with the first one after -EOPNOTSUPP or
 * urxe_offload_keep(). If a queue pair is connected, that call without `force` stops none: it notes
 * what the peers have sent. If all queue pairs are UD, it may stop them. Before each call the owner
 * passes all events and completions of the HCA on. After -EAGAIN it calls again after a while. The
 * peers determine how long the take-over lasts; the owner may call urxe_offload_keep() instead.
 * -EOPNOTSUPP: see *refusal; the HCA goes on. 0: the engine executes all queue pairs. Those that
 * stopped with an error have had URXE_ASYNC_QP_FATAL.
 *
 * A message that the peer was sending goes on, except for some that the HCA has acknowledged in
 * part, and atomics whose answer was lost: the peer's requests then fail after its last retry
 * (IBV_WC_RETRY_EXC_ERR). docs/state.md has the conditions.
 */
int urxe_offload_take_over(struct urxe_dev *dev, uint64_t now, bool force,
			   struct urxe_offload_refusal *refusal);
/* Abandons the take-over: the HCA gets send requests again. A queue pair that
 * urxe_offload_take_over() has stopped already moves to the engine once the HCA has returned all
 * its receive requests. Before the call the owner passes all events and completions of the HCA on.
 */
void urxe_offload_keep(struct urxe_dev *dev);
/* Whether urxe_offload_take_over() has stopped a queue pair, or a shared receive queue, that the
 * engine does not execute yet. While it returns true, the owner passes events and completions on.
 * An owner that has abandoned the take-over also repeats urxe_offload_keep(). */
bool urxe_offload_stopped(const struct urxe_dev *dev);

/* --- Calls of the HCA's side, in the owner's thread, outside all functions above but qp_modify. */

/*
 * The HCA has completed a request of the offloaded queue pair wc->qpn. wc->wr_id is that of the
 * request; requests of one send queue, or of a queue pair's own receive queue, complete in order.
 * `recv`: a request of its own receive queue. Completions of unknown or not offloaded queue pairs
 * are ignored.
 */
void urxe_offload_complete(struct urxe_dev *dev, const struct urxe_wc *wc, bool recv);
/*
 * The HCA has completed a request of the shared receive queue, for the queue pair wc->qpn.
 * wc->wr_id is the value that the engine has passed to post_srq_recv for the request, not the
 * program's wr_id. The HCA has not completed the request before. If the queue pair is unknown or
 * not offloaded, the program does not learn of the completion.
 */
void urxe_offload_srq_complete(struct urxe_rq *srq, const struct urxe_wc *wc);
/* The HCA's completion queue has raised the event that cq_arm requested, and the owner has passed
 * the queue's completions on. */
void urxe_offload_cq_event(struct urxe_cq *cq);
/* What cq_create() has returned for the CQ; NULL: nothing, no queue pair of the HCA uses the CQ. */
void *urxe_offload_hca_cq(const struct urxe_cq *cq);
/* The HCA has reported an asynchronous event of its queue pair `qpn`. Events of the whole device
 * are not passed here. */
void urxe_offload_qp_event(struct urxe_dev *dev, uint32_t qpn, enum urxe_async event);
/* The HCA adds no completion to the CQ any more: the engine destroys the HCA's part of all
 * offloaded queue pairs that use the CQ, which enter the error state, and flushes their requests.
 */
void urxe_offload_cq_lost(struct urxe_cq *cq);
/* As urxe_offload_qp_event, for an event of the HCA's shared receive queue. */
void urxe_offload_srq_event(struct urxe_rq *srq, enum urxe_async event);

#endif
