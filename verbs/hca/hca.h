/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: implements rxe/offload.h with libibverbs. For its owners, the
 * front ends verbs/ and tools/vm/.
 *
 * "The lock" is that of the engine: adapter.lock in a program. A device process needs none, because
 * one thread calls all functions but hca_ah_run(). The caller holds the lock in all functions,
 * unless their comment says otherwise; hca_abandon() in a forked child needs none. While a device
 * is opened or closed, libibverbs calls libc functions that urxe interposes, and these may take the
 * lock. So the caller does not hold it then. Functions that return int return 0 or a negative errno
 * value, except those of descriptors.
 */
#ifndef URXE_VERBS_HCA_HCA_H
#define URXE_VERBS_HCA_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

struct hca;
struct hca_verbs;

/* Callbacks of the owner. */
struct hca_owner {
	/* Whether the HCA is to execute the connection, else the engine does; qp_ctx is the ctx of
	 * the engine's queue pair. */
	bool (*takes)(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr);
	/* Take and release the lock; for hca_destroy_deferred(), and from hca_allow_unlock() to
	 * hca_forbid_unlock(). NULL: the owner has no lock, and does not call
	 * hca_defer_destruction(). */
	void (*lock)(void *ctx);
	void (*unlock)(void *ctx);
	/* hca_open() calls place_fd for each of the HCA's descriptors, and uses the result: `fd`,
	 * or a duplicate that replaces `fd`. NULL: the descriptors keep their numbers. */
	int (*place_fd)(int fd);
	void *ctx;
};

/*
 * Each maximum is the smaller one of the HCA's and the engine's; max_mr_size, mtu and atomics are
 * the HCA's.
 */
struct hca_limits {
	uint64_t max_mr_size;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_cqe;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_rd_atomic;      /* as responder */
	uint32_t max_init_rd_atomic; /* as requester */
	enum urxe_mtu mtu;           /* the active MTU of the HCA's port, as last read */
	bool atomics;
};

/*
 * Opens the RDMA device of that name; hca_attach() follows. The lock must not be held. `port`: the
 * device's port to use, from 1 on. `owner` lives as long as the HCA. -ENODEV: no such device;
 * -ENOSYS: `verbs` is NULL (hca_verbs_find); -EMFILE, -ENFILE, -ENOMEM: descriptors or memory are
 * lacking; or the negative errno value of a function of libibverbs.
 */
int hca_open(const struct hca_verbs *verbs, const char *name, uint8_t port,
	     const struct hca_owner *owner, struct hca **hca);
/* As hca_open(), for a process that has not loaded libibverbs: loads it first. -ENOSYS: the host
 * has no libibverbs, or an old one. */
int hca_load_and_open(const char *name, uint8_t port, const struct hca_owner *owner,
		      struct hca **hca);

/* When to open an HCA again. Zeroed at first. */
struct hca_retry {
	uint64_t pause; /* ns; 0: no attempt is due */
	uint64_t at;    /* time of the next attempt, ns */
};
/*
 * Notes the result `rc` of hca_open() at `now` (ns). If only descriptors or memory were lacking,
 * the next attempt is due after 20 ms, then after twice as long each time, up to 1 min.
 */
void hca_retry_note(struct hca_retry *retry, int rc, uint64_t now);
/* The time of the next attempt, ns; UINT64_MAX: no attempt is due. */
static inline uint64_t hca_retry_due(const struct hca_retry *retry)
{
	return retry->pause ? retry->at : UINT64_MAX;
}

/*
 * Closes the device, after hca_detach(). The lock must not be held. If other threads are within
 * calls that use the HCA without the lock, hca_close() returns at once, and the last of these
 * threads closes the device.
 */
void hca_close(struct hca *hca);
/* In a forked child: closes the child's copies of the HCA's descriptors. Frees nothing. */
void hca_abandon(struct hca *hca);

/* Gives the HCA to the engine `dev`, which may offload new objects to it from now on. */
void hca_attach(struct hca *hca, struct urxe_dev *dev);
/* Takes the HCA away from the engine (urxe_offload_unset), because it has gone or is to be
 * closed. */
void hca_detach(struct hca *hca);

/*
 * Whether the HCA is in hardware. Then it takes the RoCE packets to its GIDs from the network, so a
 * queue pair of the engine with one of these GIDs receives nothing from other hosts.
 */
bool hca_is_hardware(const struct hca *hca);
/*
 * `down`: the HCA's port is not active. From now on the engine keeps new queue pairs and shared
 * receive queues, except queue pairs with a shared receive queue that the HCA has. Without effect
 * if the HCA is in hardware: the engine's queue pairs would receive nothing as soon as the port is
 * active again. False at first.
 */
void hca_set_port_down(struct hca *hca, bool down);

void hca_limits(const struct hca *hca, struct hca_limits *limits);
/* Reads the active MTU of the HCA's port by a system call, because no event tells that the MTU has
 * changed. After an error the last MTU stays. */
void hca_read_mtu(struct hca *hca);
/* Whether the active MTU is at least `mtu`; if the one last read is smaller, reads it again. */
bool hca_has_mtu(struct hca *hca, enum urxe_mtu mtu);
/*
 * Notes entry `index` of the engine's GID table. NULL: the entry is empty. `v1`: RoCEv1, else
 * RoCEv2. `ifindex`: the kernel's interface with this address, as a VLAN interface and its parent
 * may share an address; 0: any. After the last change the caller calls hca_read_gids().
 */
void hca_set_gid(struct hca *hca, uint32_t index, const struct urxe_gid *gid, bool v1,
		 uint32_t ifindex);
/* Looks for the noted GIDs in the HCA's GID table. If the table cannot be read, a GID that was
 * found before still counts as found, unless hca_set_gid() has changed its entry. */
void hca_read_gids(struct hca *hca);
/*
 * Notes the engine's P_Key table, of n entries, and looks for them in the HCA's table. The engine
 * executes queue pairs with a P_Key that the HCA lacks.
 */
void hca_set_pkeys(struct hca *hca, const uint16_t *pkeys, uint32_t n);
/* Whether the HCA has the GID of entry `index` of the engine's GID table. If no such GID was found,
 * and the HCA's table could not be read last time, reads the table again. */
bool hca_has_gid(struct hca *hca, uint32_t index);

/* --- Calls that take long, outside the lock. */

/*
 * With the lock. From now to hca_forbid_unlock(), the engine's operations that wait for the HCA
 * (rxe/offload.h marks them) release the lock while they wait. Between the two calls the owner
 * calls only one such operation, and lets no other thread destroy the objects of that operation.
 * Each hca_allow_unlock() needs one hca_forbid_unlock().
 */
void hca_allow_unlock(struct hca *hca);
/*
 * Ends hca_allow_unlock(). With the lock, which it releases for a moment if the HCA was detached
 * since. True: CQs that were not polled during a resize may have more completions, for which no
 * further completion event comes; the owner calls hca_poll() soon. True also if the HCA has failed
 * (hca_is_dead()). False if the HCA was detached.
 */
bool hca_forbid_unlock(struct hca *hca);

struct hca_mr;
struct hca_ah_call;
struct hca_pd;

/*
 * Call it without the lock, after the last step of each call in three steps (below) whose first
 * step has succeeded. It closes the device if hca_close() was called meanwhile and no other call is
 * in progress.
 */
void hca_release(struct hca *hca);

/*
 * Registers a region of the engine with the HCA, in three steps. hca_mr_begin(): with the lock;
 * -EOPNOTSUPP: the HCA cannot have the region; -ENOMEM, or an error of the HCA. hca_mr_run():
 * without the lock; sets *key; errors as of urxe_offload_ops.mr_reg. hca_mr_end(): with the lock,
 * always after a successful hca_mr_begin(). `kept`: urxe_offload_mr_reg() has given the region to
 * the engine; if not, hca_mr_end() deregisters it. If the HCA was detached meanwhile, `kept` must
 * be false.
 */
int hca_mr_begin(struct hca *hca, const struct urxe_mr_attr *attr, struct hca_mr **mr);
int hca_mr_run(struct hca_mr *mr, const struct urxe_mr_attr *attr, uint32_t *key);
void hca_mr_end(struct hca_mr *mr, bool kept);

/*
 * Allocates the HCA's protection domain for a PD of the engine, in three steps: hca_pd_begin() and
 * hca_pd_add() with the lock, hca_pd_run() without. If the HCA allocates the domain, it exists at
 * least until hca_pd_end() or hca_detach(). NULL: the PD has a domain already, or no memory; then
 * the other two steps are left out. A PD without a domain gets one with its first region, queue
 * pair or shared receive queue.
 */
struct hca_pd *hca_pd_begin(struct hca *hca, uint32_t pd);
void hca_pd_run(struct hca_pd *pd);
void hca_pd_add(struct hca_pd *pd);
/* With the lock: the owner has deallocated the PD. The domain, if there is one, is deallocated now
 * or after the last object in it. */
void hca_pd_end(struct hca *hca, uint32_t pd);

/*
 * Creates the HCA's address handle for datagrams from queue pairs of the PD along the path; without
 * this call the first datagram creates it. Three steps: hca_ah_begin() and hca_ah_end() with the
 * lock, hca_ah_run() without. For a path without a next hop the new handle replaces an old one,
 * because the peer's MAC may have changed since; for a path with a next hop an old handle stays.
 * NULL: the path has a next hop, and the HCA has a handle of the path; the HCA has no protection
 * domain for the PD, or lacks the path's source GID; or no memory. Then the other steps are left
 * out. `anew`: makes a handle even if the HCA has one, to see whether the HCA still finds the next
 * hop. hca_ah_end() returns 0, or the HCA's error, after which an old handle stays: for instance
 * -EHOSTUNREACH, because the HCA finds no next hop.
 */
struct hca_ah_call *hca_ah_begin(struct hca *hca, uint32_t pd, const struct urxe_path *path,
				 bool anew);
void hca_ah_run(struct hca_ah_call *call);
int hca_ah_end(struct hca_ah_call *call);
/* With the lock: whether the HCA has a handle of the path, so that a datagram creates none. */
bool hca_has_ah(struct hca *hca, uint32_t pd, const struct urxe_path *path);
/* Whether one handle serves both paths. */
bool hca_is_same_path(const struct urxe_path *a, const struct urxe_path *b);

/*
 * With the lock: objects that the engine destroys from now on exist at the HCA until
 * hca_destroy_deferred(), which destroys them there without the lock. Queue pairs that hca_detach()
 * ends, or whose requests the HCA cannot flush, are destroyed at once, because the engine then
 * flushes these requests. hca_detach() also deregisters regions at once if another thread is in a
 * call outside the lock. An owner with the operation `written` (struct urxe_ops) must not
 * call this: the engine reports the HCA's writes to a region when it destroys the region, so the
 * HCA must have ended them by then.
 */
void hca_defer_destruction(struct hca *hca);
/*
 * With the lock, before its holder releases it for the first time after hca_defer_destruction(); if
 * hca_close() follows, the call may be left out. Destroys the deferred objects; if there are some,
 * releases the lock meanwhile. When it returns, the HCA accesses none of their memory.
 */
void hca_destroy_deferred(struct hca *hca);

/* Passes completions of all CQs to the engine, at most 128 of each. True: more may wait. */
bool hca_poll(struct hca *hca);
/*
 * Passes completions of one CQ, which the program polls, to the engine. `hca_cq` comes from
 * urxe_offload_hca_cq(). After 15 such calls, the next one polls all CQs instead, because
 * completions of other CQs make room for requests. NULL: always all CQs. True: more may wait.
 */
bool hca_poll_cq(struct hca *hca, void *hca_cq);

/* Whether a thread resizes the CQ. hca_poll() and hca_poll_cq() then skip the CQ, and that thread's
 * hca_forbid_unlock() polls the CQ. `hca_cq`: as above; NULL: false. */
bool hca_cq_is_resizing(const void *hca_cq);

/*
 * Call it before the owner sleeps, if the owner does not learn when programs poll, as in a device
 * process. The next completion of any CQ will make hca_comp_fd() readable. True: completions came
 * meanwhile, or more may wait, so the owner must not sleep.
 */
bool hca_arm(struct hca *hca);
/* The number of completions that were passed to the engine so far. */
uint64_t hca_completions(const struct hca *hca);

/* Descriptors for poll(2), readable when hca_handle_events() has completion events, or asynchronous
 * events, to handle. */
int hca_comp_fd(const struct hca *hca);
int hca_async_fd(const struct hca *hca);
/* Handles up to 64 completion events and 64 asynchronous events that wait. Before each event it
 * passes completions to the engine, except those of a CQ that a thread resizes. Never blocks. */
void hca_handle_events(struct hca *hca);
/* As hca_handle_events(), and passes the completions of all CQs. False: some may be left, because a
 * thread resizes a CQ, or peers send without end. */
bool hca_drain(struct hca *hca);
/* Whether the HCA has failed: hca_poll() passes no completions any more, and the owner has to
 * detach and close the HCA. */
bool hca_is_dead(const struct hca *hca);

#endif
