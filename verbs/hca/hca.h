/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: rxe/offload.h on libibverbs. For the front ends: verbs/ and
 * tools/vm/.
 *
 * "The lock" is that of the engine, adapter.lock in a program; a device process needs none, because
 * it has one thread. The caller holds it in all functions, unless their comment says otherwise, and
 * but for hca_abandon() in a forked child. While a device is opened or closed, libibverbs calls
 * back into the interposed functions. Functions that return int return 0 or a negative errno value,
 * except those of descriptors.
 */
#ifndef URXE_VERBS_HCA_HCA_H
#define URXE_VERBS_HCA_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

struct hca;
struct hca_verbs;

/* What the owner decides. */
struct hca_owner {
	/* Whether the HCA executes the connection; qp_ctx is the ctx of the engine's queue pair. */
	bool (*takes)(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr);
	/* Take and release the lock; for hca_end_collected() and hca_free_lock() only. */
	void (*lock)(void *ctx);
	void (*unlock)(void *ctx);
	void *ctx;
};

/* Each is the smaller one of the limits of HCA and engine; mtu is the HCA's. */
struct hca_limits {
	uint64_t max_mr_size;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_cqe;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_rd_atomic;      /* as responder */
	uint32_t max_init_rd_atomic; /* as requester */
	enum urxe_mtu mtu;           /* of the port, active */
	bool atomics;
};

/*
 * Opens the device of that name. adapter.lock must not be held. `port`: its port, from 1 on.
 * -ENODEV: no such device; -ENOSYS: `verbs` is NULL, because the program's libibverbs lacks a
 * function; -ENOMEM; or the negative errno value of a function of libibverbs.
 */
int hca_open(const struct hca_verbs *verbs, const char *name, uint8_t port,
	     const struct hca_owner *owner, struct hca **hca);
/* For a process that has not loaded libibverbs: loads it, and opens the device. -ENOSYS: the host
 * has no libibverbs, or an old one. */
int hca_load_and_open(const char *name, uint8_t port, const struct hca_owner *owner,
		      struct hca **hca);
/* Closes the device, after hca_detach(). adapter.lock must not be held. If other threads are within
 * calls that take long, it returns at once, and the last of these threads closes the device. */
void hca_close(struct hca *hca);
/* In a forked child: closes the parent's descriptors. */
void hca_abandon(struct hca *hca);

/* Makes the HCA that of the device. */
void hca_attach(struct hca *hca, struct urxe_dev *dev);
/* The HCA is gone, or goes (urxe_offload_unset). */
void hca_detach(struct hca *hca);

void hca_limits(const struct hca *hca, struct hca_limits *limits);
/* Entry `index` of the engine's GID table; NULL: no entry. `v1`: RoCEv1. hca_read_gids() comes
 * after the last change. */
void hca_set_gid(struct hca *hca, uint32_t index, const struct urxe_gid *gid, bool v1);
/* Looks for the entries in the HCA's table. */
void hca_read_gids(struct hca *hca);
/* The engine's P_Key table, of n entries; looks for them in the HCA's table. Queue pairs with
 * another P_Key are the engine's. */
void hca_set_pkeys(struct hca *hca, const uint16_t *pkeys, uint32_t n);
/* Whether the HCA has the GID of that entry. */
bool hca_has_gid(const struct hca *hca, uint32_t index);

/* --- Calls that take long, outside the lock. */

/*
 * With the lock. Until hca_keep_lock(), operations of the engine that wait (rxe/offload.h) release
 * the lock meanwhile. The owner keeps the objects of the operation, and calls no other function of
 * the engine in between.
 */
void hca_free_lock(struct hca *hca);
/* With the lock, which it releases for a moment if the HCA has gone. */
void hca_keep_lock(struct hca *hca);

struct hca_mr;
struct hca_ah_call;
struct hca_pd;

/* Without the lock, after the last step of each call whose first step has succeeded: closes the
 * device if hca_close() has come meanwhile, and no other call is left. */
void hca_release(struct hca *hca);

/*
 * A region of the engine, in three steps. hca_mr_begin(): with the lock; -EOPNOTSUPP: the HCA
 * cannot have the region; -ENOMEM, or an error of the HCA. hca_mr_run(): adapter.lock must not be
 * held; sets *key; errors as of urxe_offload_ops.mr_reg. hca_mr_end(): with the lock, if
 * hca_mr_begin() has succeeded. `kept`: urxe_offload_mr_reg() has given the region to the engine;
 * else it ends here. The HCA may have gone meanwhile; then the engine cannot have the region.
 */
int hca_mr_begin(struct hca *hca, const struct urxe_mr_attr *attr, struct hca_mr **mr);
int hca_mr_run(struct hca_mr *mr, const struct urxe_mr_attr *attr, uint32_t *key);
void hca_mr_end(struct hca_mr *mr, bool kept);

/*
 * The HCA's protection domain for a PD of the engine, until hca_pd_end(). The locks are those of
 * the three steps above. NULL: there is one, or no memory. A PD that has none gets one with its
 * first region, queue pair or shared receive queue, in a call that holds the lock.
 */
struct hca_pd *hca_pd_begin(struct hca *hca, uint32_t pd);
void hca_pd_run(struct hca_pd *pd);
void hca_pd_add(struct hca_pd *pd);
/* With the lock: the owner has deallocated the PD. */
void hca_pd_end(struct hca *hca, uint32_t pd);

/*
 * The address handle for datagrams from queue pairs of the PD to the path: afterwards the first
 * datagram needs none. The locks are those of the three steps above. NULL: the HCA has one, has no
 * protection domain for the PD, or lacks the path's source GID.
 */
struct hca_ah_call *hca_ah_begin(struct hca *hca, uint32_t pd, const struct urxe_path *path);
void hca_ah_run(struct hca_ah_call *call);
void hca_ah_end(struct hca_ah_call *call);

/*
 * With the lock: what the engine destroys from now on exists at the HCA until hca_end_collected().
 * Queue pairs that hca_detach() ends, or that refused the transition to the error state, are
 * destroyed at once, because the engine flushes their requests. Not for an owner with the operation
 * `written` (struct urxe_ops): the engine reports the writes to a region before its end.
 */
void hca_collect_ends(struct hca *hca);
/*
 * With the lock, before its holder releases it for the first time after hca_collect_ends(), or
 * never if hca_close() follows. Destroys the objects; if there are some, releases the lock
 * meanwhile. When it returns, the HCA accesses none of their memory.
 */
void hca_end_collected(struct hca *hca);

/* Passes completions to the engine. True: more may wait. */
bool hca_poll(struct hca *hca);
/*
 * The same for one CQ, which the program polls: `hca_cq` of urxe_offload_hca_cq(). Some calls poll
 * all CQs, because completions of other CQs make room for requests. NULL: as hca_poll().
 */
bool hca_poll_cq(struct hca *hca, void *hca_cq);

/*
 * Before a sleep of an owner whose programs do not call it to poll: the next completion of any CQ
 * makes hca_comp_fd() readable. True: completions came meanwhile, or more may wait, so the owner
 * does not sleep.
 */
bool hca_arm(struct hca *hca);
/* The number of completions that were passed to the engine so far. */
uint64_t hca_completions(const struct hca *hca);

/* Readable when hca_handle_events() has something to do. */
int hca_comp_fd(const struct hca *hca);
int hca_async_fd(const struct hca *hca);
/* Handles completion events and asynchronous events. */
void hca_handle_events(struct hca *hca);
/* The HCA has reported its end: hca_poll() passes no completion any more, and the owner detaches
 * the HCA. */
bool hca_is_dead(const struct hca *hca);

#endif
