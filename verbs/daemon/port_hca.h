/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: opens and closes it as the daemon reports it. Functions need
 * port.lock, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_PORT_HCA_H
#define URXE_VERBS_DAEMON_PORT_HCA_H

#include <stdbool.h>

#include <hca/way.h>
#include <vnic/attach.h>

struct hca;

/* URXE_WAY */
enum hca_way port_hca_way(void);

/* The daemon's HCA is another one than the port's, or the port's HCA is dead. */
bool port_hca_stale(void);
/* Another daemon, which counts generations anew, has sent `now`; the last one had sent `before`. If
 * name and port are equal, the open HCA stays. */
void port_hca_adopt(const struct vnic_attach_hca *before, const struct vnic_attach_hca *now);
/* Closes the HCA that has gone, and opens the daemon's. Releases the lock meanwhile. In the engine
 * thread, or before it starts. */
void port_hca_renew(void);
/* The port is being detached: returns the HCA. The caller releases the lock before it calls
 * hca_close(). NULL: none. */
struct hca *port_hca_release(void);

/* The GID table of the port has changed. */
void port_hca_set_gids(void);

#endif
