/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA that backs the device: opens and closes it as the daemon reports it, and decides which of
 * HCA and engine executes a connection. Functions need port.lock, unless their comment says
 * otherwise.
 */
#ifndef URXE_VERBS_PORT_PORT_HCA_H
#define URXE_VERBS_PORT_PORT_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <hca/hca.h>
#include <hca/way.h>
#include <vnic/attach.h>

struct urxe_qp_attr;

struct port_hca {
	struct hca *hca;     /* NULL: none */
	uint32_t generation; /* of the daemon's HCA that was tried last (struct vnic_attach_hca) */
	bool unhooked;       /* a program posts receives without the hooks of poll_hook.c */
	const struct urxe_cq *polled; /* CQ that a program polls now; NULL: none, or all */
};

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
/* The port is being detached: returns the HCA for hca_close(), without the lock; NULL: none. */
struct hca *port_hca_release(void);

/* Passes completions to the engine. True: more may wait. */
bool port_hca_poll(void);
/* The GID table of the port has changed. */
void port_hca_set_gids(void);

/*
 * Without the lock; may block for an answer of the daemon. Decides whether the HCA (true) or the
 * engine executes a connection with these attributes, and sets *reason. `number_taken`: another
 * process has the QPN of the queue pair.
 */
bool port_hca_chooses(const struct urxe_qp_attr *attr, bool number_taken, enum way_reason *reason);

#endif
