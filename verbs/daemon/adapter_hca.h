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

/* URXE_WAY */
enum hca_way adapter_hca_way(void);

/* Whether the daemon has another HCA than the adapter, or the adapter's HCA is dead. */
bool adapter_hca_stale(void);
/* Another daemon, which counts generations anew, has sent `now`; the last one had sent `before`. If
 * name and port are equal, the open HCA stays. */
void adapter_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now);
/* Closes the HCA that has gone, and opens the daemon's. Releases the lock meanwhile. In the engine
 * thread, or before it starts. */
void adapter_hca_renew(void);
/* The adapter is being detached: returns the HCA. The caller releases the lock before it calls
 * hca_close(). NULL: none. */
struct hca *adapter_hca_release(void);

/* The GID table of the adapter has changed. */
void adapter_hca_set_gids(void);

#endif
