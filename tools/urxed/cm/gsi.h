/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QP1 of the host, the general services interface (IBA 13.5): management datagrams
 * to and from other hosts' QP1, over an engine of the daemon's own.
 *
 * Frames come in and go out by the switch; nothing else is done before gsi_run, so that
 * no call of one comes back in the middle of another.
 */
#ifndef URXE_URXED_CM_GSI_H
#define URXE_URXED_CM_GSI_H

#include <stdint.h>

#include <cm/cm.h>
#include <rxe/rxe.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"

#define GSI_RECVS   256
#define GSI_WAITING 256 /* datagrams that wait for the MAC of their next hop */

/* X(identifier, printed name, meaning) */
#define GSI_DROP_LIST(X)                                                                     \
	X(NO_ADDRESS, "gsi_no_address", "from or to an address that the host has no longer") \
	X(NO_NEIGHBOUR, "gsi_no_neighbour", "to a host that nobody finds")                   \
	X(NO_ROOM, "gsi_no_room", "no room, as too many wait to be sent")                    \
	X(LENGTH, "gsi_length", "came in, and is no management datagram by its length")

#define GSI_DROP_ENUM(id, name, text) GSI_DROP_##id,
enum gsi_drop { GSI_DROP_LIST(GSI_DROP_ENUM) GSI_DROP_COUNT };
const char *gsi_drop_name(enum gsi_drop drop);

struct gsi_ops {
	/* To the switch: a frame of the host's own. */
	void (*send)(void *ctx, const uint8_t *frame, uint32_t len);
	/* A datagram has come, by a path as seen from here. */
	void (*input)(void *ctx, uint64_t now, const struct cm_path *path,
		      const uint8_t mad[CM_MAD_LEN]);
};

struct gsi_waiting {
	struct neigh_waiter waiter;
	bool used;
	struct cm_path path;
	uint8_t mad[CM_MAD_LEN];
};

struct gsi {
	const struct host *host;
	struct neigh *neigh;
	const struct gsi_ops *ops;
	void *ctx;
	struct urxe_dev *dev;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	struct urxe_mr *mr;
	uint8_t *buffers; /* GSI_RECVS of them */
	struct urxe_wc done[GSI_RECVS];
	uint32_t n_done;
	uint64_t drops[GSI_DROP_COUNT];
	struct gsi_waiting waiting[GSI_WAITING];
};

/* 0, or a negative errno value; then nothing is left. */
int gsi_open(struct gsi *g, const struct host *host, struct neigh *neigh, const struct gsi_ops *ops,
	     void *ctx);
/* Also for one that is all 0. */
void gsi_close(struct gsi *g);
/* The host's addresses have changed. */
void gsi_host_changed(struct gsi *g);

/* Takes a frame to QP1. */
void gsi_input(struct gsi *g, uint64_t now, const uint8_t *frame, uint32_t len);
/* Sends a datagram, once its next hop is known. Who waits for an answer sends it again. */
void gsi_send(struct gsi *g, uint64_t now, const struct cm_path *path,
	      const uint8_t mad[CM_MAD_LEN]);
/* Hands over what has come, and gives the switch what there is to send. */
void gsi_run(struct gsi *g, uint64_t now);
/* The neighbours' answer to a waiter of gsi_send. */
void gsi_answer(struct gsi *g, struct neigh_waiter *w, int status, const struct vnic_next_hop *hop);

#endif
