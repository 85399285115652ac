/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: opens and closes it as the daemon reports it. Functions need
 * adapter.lock, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_ADAPTER_HCA_H
#define URXE_VERBS_DAEMON_ADAPTER_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <hca/way.h>
#include <rxe/offload.h>
#include <vnic/attach.h>

struct hca;

/* The user's choice in the environment variable URXE_WAY; HCA_WAY_AUTO without it. Needs no
 * lock. */
enum hca_way adapter_hca_way(void);

/* Whether the daemon has another HCA than the adapter, or the adapter's HCA is dead. */
bool adapter_hca_stale(void);
/*
 * The adapter has another daemon, which counts generations anew and has sent `now`; the daemon
 * before had sent `before`. If name and port are equal, the adapter keeps its HCA; else
 * adapter_hca_stale() becomes true.
 */
void adapter_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now);
/*
 * Call it while adapter_hca_stale(): closes the adapter's HCA, if any, and opens the daemon's,
 * unless URXE_WAY forbids it. With URXE_HCA_GONE=engine the engine first takes over the queue pairs
 * of the old HCA. Releases adapter.lock meanwhile. In the engine thread, or before it starts.
 */
void adapter_hca_renew(void);
/*
 * Detaches the HCA from the engine and the adapter, and returns it. The caller releases
 * adapter.lock, then calls hca_close(). NULL: there is none.
 */
struct hca *adapter_hca_release(void);

/* How far the engine's take-over of the HCA's queue pairs is. All 0 at first. */
struct adapter_take_over {
	unsigned tries;                      /* calls of urxe_offload_take_over() so far */
	uint64_t due;                        /* time of the next one, ns */
	struct urxe_offload_refusal refusal; /* after -EOPNOTSUPP */
};

/*
 * The engine goes on with all queue pairs that the HCA executes (rxe/offload.h). -EAGAIN: call it
 * again after about a millisecond, in which other threads may have the lock. It first waits for a
 * pause of the peers, and later only for the requests that the HCA has; for these it may return
 * -EAGAIN for ever. -EOPNOTSUPP: adapter_hca_refusal() has the reason, and the HCA goes on. -EIO:
 * the HCA has failed. 0: the HCA executes no queue pair, or the adapter has no HCA. A caller that
 * abandons the take-over calls adapter_hca_keep().
 */
int adapter_hca_take_over(struct adapter_take_over *t);
/*
 * The HCA goes on with its queue pairs. If it has stopped them already, the engine goes on with
 * them, and false means: call it again after about a millisecond, as for adapter_hca_take_over().
 */
bool adapter_hca_keep(struct adapter_take_over *t);
/* A clause such as "it has a shared receive queue". */
const char *adapter_hca_refusal(const struct urxe_offload_refusal *refusal);

/* Call it when adapter.welcome.port.gids has changed: gives the HCA the new table. No HCA: no
 * effect. */
void adapter_hca_set_gids(void);

#endif
