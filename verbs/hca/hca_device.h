/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of an open HCA. For all files of this folder. */
#ifndef URXE_VERBS_HCA_HCA_DEVICE_H
#define URXE_VERBS_HCA_HCA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hca.h"
#include "hca_gid.h"
#include "hca_pkey.h"
#include "hca_verbs.h"
#include "objects/destruction.h"
#include "objects/hca_ah.h"
#include "objects/hca_pd.h"
#include "objects/work_id.h"

struct hca_cq;
struct hca_qp;

LIST_HEAD(hca_cq_list, hca_cq);
LIST_HEAD(hca_qp_list, hca_qp);

struct hca {
	const struct hca_verbs *verbs;
	const struct hca_owner *owner;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct urxe_dev *dev; /* NULL: not attached */
	struct ibv_device_attr attr;
	enum urxe_mtu mtu; /* of the port, as last read */
	uint8_t port;
	bool hardware;               /* hca_is_hardware() */
	bool engine_keeps_new;       /* the HCA gets no new SRQs, and no new queue pairs without an
					SRQ of the HCA (hca_set_port_down) */
	bool dead;                   /* hca_is_dead() */
	bool abandoned;              /* hca_abandon() was called, in a forked child */
	struct hca_cq_list busy_cqs; /* CQs that may have completions */
	uint32_t single_polls;       /* calls of hca_poll_cq since all CQs were polled */
	struct hca_qp_list qps;
	struct hca_pd_list pds;
	struct hca_ah_cache ahs;
	struct hca_gids gids;
	struct hca_pkeys pkeys;
	struct work_ids work_ids;
	uint32_t flat_pieces; /* pieces of all mappings of objects/flat_memory.h */
	uint64_t completions; /* number of completions that were passed to the engine */
	bool defers;          /* between hca_defer_destruction() and hca_destroy_deferred() */
	bool may_unlock;      /* between hca_allow_unlock() and hca_forbid_unlock() */
	bool detaching;       /* within hca_detach() */
	/* While a thread resized a CQ, another thread left out a poll or an event of the CQ:
	 * hca_cqs_catch_up() polls the CQ and passes the event afterwards. */
	bool skipped;
	/* Protects the capacity of CQs: one thread at a time resizes a CQ. Rank 4 of
	 * docs/locking.md. The lock (hca.h) protects all other members but `holds`. */
	pthread_mutex_t resizing;
	struct hca_destruction_list deferred; /* objects that hca_destroy_deferred() destroys */
	/* One for the owner until hca_close(), and one for each call that uses the HCA without the
	 * lock or may release the lock. Atomic. The end of the last one closes the device. */
	uint32_t holds;
};

/* Counts one more hold; hca_release() is the counterpart. */
static inline void hca_hold(struct hca *hca)
{
	__atomic_fetch_add(&hca->holds, 1, __ATOMIC_RELAXED);
}

#endif
