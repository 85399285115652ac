/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The host's connection manager: QP1 below it, the programs above it, in urxed. */
#ifndef URXE_URXED_CM_RDMACM_H
#define URXE_URXED_CM_RDMACM_H

#include <stdint.h>
#include <sys/types.h>

#include "urxed/cm/gsi.h"
#include "urxed/cm/ucma.h"
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
 * Starts it, for the group's members too if that is not 0; it is watched in the clients'
 * epoll set, itself as data. On error `error` has one sentence, and rdmacm_close is still to be
 * called.
 */
int rdmacm_open(struct rdmacm *r, const char *run_dir, gid_t group, uint64_t now,
		struct sessions *sessions, char error[RDMACM_ERROR]);
/* Also for one that is all 0. Peers are not told: another daemon may take this one's place. */
void rdmacm_close(struct rdmacm *r);

/* Handles what programs ask. */
void rdmacm_event(struct rdmacm *r, uint64_t now);
/* Does what is due, and sends what there is; returns when to call again. */
uint64_t rdmacm_tick(struct rdmacm *r, uint64_t now);
/* The neighbours' answer to a waiter that is not a client's. */
void rdmacm_neigh_answer(struct rdmacm *r, struct neigh_waiter *w, int status,
			 const struct vnic_next_hop *hop);
/* The host's addresses have changed. */
void rdmacm_host_changed(struct rdmacm *r);
/* Writes its counters to the log. */
void rdmacm_log_counters(const struct rdmacm *r);
/* Programs that have it open. */
uint32_t rdmacm_users(const struct rdmacm *r);

#endif
