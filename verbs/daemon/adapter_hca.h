/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: opens and closes it as the daemon reports it. Functions need
 * adapter.lock, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_ADAPTER_HCA_H
#define URXE_VERBS_DAEMON_ADAPTER_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/offload.h>
#include <vnic/attach_protocol.h>

struct hca;

/*
 * Whether the daemon names another HCA than the adapter has, or the adapter's HCA is dead. With
 * URXE_HCA_GONE=engine also whether that HCA's port has gone down, or is active again. Also whether
 * it is time to open again an HCA for which descriptors or memory were lacking.
 */
bool adapter_hca_stale(void);
/*
 * The adapter has another daemon, which counts generations anew and has sent `now`; the daemon
 * before had sent `before`. If name and port are equal, the adapter keeps its HCA; else
 * adapter_hca_stale() becomes true.
 */
void adapter_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now);
/*
 * Call it while adapter_hca_stale(): closes the adapter's HCA, if any, and opens the one that the
 * daemon has named, unless URXE_WAY forbids it. With URXE_HCA_GONE=engine the engine first takes
 * over the queue pairs of the old HCA; if it cannot, and only the port is down, the HCA stays.
 * Releases adapter.lock meanwhile. In the engine thread, or before it starts.
 */
void adapter_hca_renew(void);
/* Detaches the HCA from the engine and the adapter, and returns it: queue pairs that it executes
 * fail. The caller releases adapter.lock, then calls hca_close(). NULL: there is none. */
struct hca *adapter_hca_release(void);

/* The threads that have the engine take over the HCA's queue pairs. */
enum hca_taker {
	TAKER_QUIESCE = 1, /* a checkpointer's thread */
	TAKER_GONE = 2,    /* the engine thread: the HCA goes (URXE_HCA_GONE) */
};

/*
 * Has the engine go on with all queue pairs that the HCA executes (rxe/offload.h). -EAGAIN: call it
 * again after about a millisecond, in which other threads may have the lock. The first calls return
 * -EAGAIN while peers send requests, or the daemon does not pass packets to the engine yet; later
 * calls only while the HCA has requests or has not returned receives, perhaps for ever.
 * -EOPNOTSUPP: the HCA goes on. *refusal has the reason of -EAGAIN and -EOPNOTSUPP. -EIO: the HCA
 * has failed. 0: the HCA executes no queue pair, or the adapter has no HCA. Calls of both takers
 * may alternate. A taker that gives up after an error calls adapter_hca_abandon().
 */
int adapter_hca_take_over(enum hca_taker taker, struct urxe_offload_refusal *refusal);
/*
 * The taker does not want the take-over any more. Without another taker, the HCA gets requests
 * again. A queue pair that the HCA has stopped already becomes the engine's: at once if the HCA has
 * returned its receive requests, else in a later adapter_hca_finish(). The caller then delivers the
 * engine's completions and frames.
 */
void adapter_hca_abandon(enum hca_taker taker);
/* The engine thread calls it while adapter.hca.qps_stopped: handles the HCA's events and
 * completions, and lets the engine execute the queue pairs whose receive requests have come back.
 */
void adapter_hca_finish(void);
/* The reason as a clause for messages: about the queue pair refusal->qpn, such as "urxed does not
 * know its number"; or about the HCA, such as "the HCA has requests that do not end" after -EAGAIN.
 */
const char *adapter_hca_refusal(const struct urxe_offload_refusal *refusal);

/* Call it when adapter.welcome.port.gids has changed: gives the HCA the new table. No HCA: no
 * effect. */
void adapter_hca_set_gids(void);
/* Call it when adapter.welcome.port.hca.down has changed: tells the HCA (hca_set_port_down). While
 * the port is down, the engine keeps new queue pairs, except those with a shared receive queue that
 * the HCA has. No HCA: no effect. */
void adapter_hca_set_state(void);
/* Call it when adapter.welcome.pkeys has changed: gives the HCA the new table. No HCA: no
 * effect. */
void adapter_hca_set_pkeys(void);

#endif
