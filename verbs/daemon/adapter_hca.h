/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: opens and closes it as the daemon reports it. Functions need
 * adapter.lock, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_ADAPTER_HCA_H
#define URXE_VERBS_DAEMON_ADAPTER_HCA_H

#include <stdbool.h>

#include <hca/way.h>
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

/* Call it when adapter.welcome.port.gids has changed: gives the HCA the new table. No HCA: no
 * effect. */
void adapter_hca_set_gids(void);

#endif
