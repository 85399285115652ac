/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The host's rdma_cm in urxed: connects QP1 (gsi.h) and the switch with the code that serves
 * programs (ucma.h). daemon_start.c and daemon_run.c call this. */
#ifndef URXE_URXED_CM_RDMACM_H
#define URXE_URXED_CM_RDMACM_H

#include <stdint.h>
#include <sys/types.h>

#include "urxed/cm/ucma.h"
#include "urxed/qp1/gsi.h"
#include "urxed/session/session.h"
#include "urxed/switch/switch.h"

#define RDMACM_ERROR 256

struct rdmacm {
	const char *run_dir;
	struct sessions *sessions;
	struct gsi gsi;
	struct ucma ucma;
};

/*
 * Starts rdma_cm. If `group` is not 0, the group's members may also use it. The epoll set of
 * `sessions` watches it, with r as data. Returns 0, or a negative errno value; `error` then has one
 * sentence, and the caller still calls rdmacm_close.
 */
int rdmacm_open(struct rdmacm *r, const char *run_dir, gid_t group, uint64_t now,
		struct sessions *sessions, char error[RDMACM_ERROR]);
/* Accepts a zeroed structure. Sends no DREQ to peers, because another daemon may take over the
 * connections. */
void rdmacm_close(struct rdmacm *r);

/* Handles expired timers and received MADs; returns the time of the next call in ns, UINT64_MAX: no
 * timer runs. */
uint64_t rdmacm_tick(struct rdmacm *r, uint64_t now);
/* Call it with neigh.h's answer for a waiter of gsi_send.c or cma_resolve.c. */
void rdmacm_neigh_answer(struct rdmacm *r, struct neigh_waiter *w, int status,
			 const struct vnic_next_hop *hop);

#endif
