/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QP1 of the host, the general services interface (IBA 13.5): sends and receives MADs with an
 * engine (rxe/) that the daemon runs for QP1 alone. rdmacm.c calls this, in the daemon's thread.
 *
 * gsi_input and gsi_send only queue; gsi_run does the work, so no callback is called recursively.
 * All queues are fair (fair_queue.h): a sender that floods QP1 loses its own frames, and a next hop
 * that does not answer delays no other MAD. gsi_run serves known senders first: those whose MAC was
 * confirmed by ARP or neighbour discovery.
 *
 * If urxed itself rejects a request, because no ID listens or the request's new ID was destroyed
 * unanswered, the rejection goes to the MAC from which the request came. So such requests need no
 * entries of the neighbour table. A sender with an invented address gets at most one MAD of the
 * same length for each of its own.
 */
#ifndef URXE_URXED_QP1_GSI_H
#define URXE_URXED_QP1_GSI_H

#include <stdbool.h>
#include <stdint.h>

#include <cm/cm.h>
#include <rxe/rxe.h>

#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/qp1/fair_queue.h"

#define GSI_RECVS 64
#define GSI_BURST 16 /* most MADs that are sent together */
#define GSI_HOPS  64 /* most next hops under resolution; a new one displaces the oldest */

/* The reasons of drops, each as X(identifier, printed name, meaning). */
#define GSI_DROP_LIST(X)                                                                  \
	X(NO_ADDRESS, "gsi_no_address", "the host no longer has the address of the MAD")  \
	X(NO_NEIGHBOUR, "gsi_no_neighbour", "the MAC address of the next hop is unknown") \
	X(NO_ROOM, "gsi_no_room", "too many MADs wait to be sent")                        \
	X(FLOOD, "gsi_flood", "received, and too many of the sender's MADs were waiting") \
	X(LENGTH, "gsi_length", "received, and its length is not that of a MAD")          \
	X(HCA, "gsi_hca", "received, a request or disconnection that the HCA receives, too")

#define GSI_DROP_ENUM(id, name, text) GSI_DROP_##id,
enum gsi_drop { GSI_DROP_LIST(GSI_DROP_ENUM) GSI_DROP_COUNT };

struct gsi_ops {
	/* Whether the switch now takes GSI_BURST frames. If not, MADs stay in the queue, and the
	 * caller of gsi_run calls it again when the switch takes frames. */
	bool (*has_room)(void *ctx);
	/* Gives an Ethernet frame to the switch. */
	void (*send)(void *ctx, const uint8_t *frame, uint32_t len);
	/* A MAD has arrived; `path` leads back to its sender. */
	void (*input)(void *ctx, uint64_t now, const struct cm_path *path,
		      const uint8_t mad[CM_MAD_LEN]);
};

/* A next hop under resolution, whose MADs wait in gsi.unresolved. */
struct gsi_hop {
	struct neigh_waiter waiter;
	bool used;
	uint64_t number; /* increases from hop to hop */
	uint8_t key[FAIR_QUEUE_KEY];
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
	uint8_t *buffers;               /* GSI_RECVS receive buffers */
	struct urxe_wc done[GSI_RECVS]; /* receive completions of the current frame */
	uint32_t n_done;
	uint64_t drops[GSI_DROP_COUNT];
	struct gsi_hop hops[GSI_HOPS + 1]; /* at least one of them is unused */
	uint32_t n_hops;                   /* number of hops in use */
	uint64_t last_hop;                 /* number of the newest hop */
	struct fair_queue received;        /* frames, by source address */
	struct fair_queue unresolved;      /* MADs that wait for a hop, by next hop */
	struct fair_queue outgoing;        /* MADs with the MAC of their next hop, by next hop */
};

/* Returns 0 or a negative errno value; on error the caller has nothing to close. */
int gsi_open(struct gsi *g, const struct host *host, struct neigh *neigh, const struct gsi_ops *ops,
	     void *ctx);
/* Accepts a zeroed structure. */
void gsi_close(struct gsi *g);
/* Call it after the host's addresses have changed: gives them to the engine of QP1. */
void gsi_host_changed(struct gsi *g);

/* Queues a frame for QP1 that the switch has received. */
void gsi_input(struct gsi *g, uint64_t now, const uint8_t *frame, uint32_t len);
/*
 * Queues a MAD: for path->mac if path->has_mac; else for its next hop, when neigh.h has resolved
 * that. A MAD may be lost, so the caller repeats requests. gsi_run drops the MAD if by then the
 * host does not have the address path->sgid at path->sgid_index.
 */
void gsi_send(struct gsi *g, uint64_t now, const struct cm_path *path,
	      const uint8_t mad[CM_MAD_LEN]);
/* Whether the queue has room for n MADs whose next hop is resolved. */
bool gsi_has_room(const struct gsi *g, uint32_t n);
/* Calls ops->input for received MADs, and ops->send for frames to send. */
void gsi_run(struct gsi *g, uint64_t now);
/* Call it with neigh.h's answer to a waiter of gsi_send: queues the MADs for this next hop, or
 * drops them if status is not 0. */
void gsi_neigh_answer(struct gsi *g, struct neigh_waiter *w, int status,
		      const struct vnic_next_hop *hop);

/* --- gsi_send.c, for gsi.c */
/* Posts at most GSI_BURST queued MADs to the engine. Returns false if none was queued. */
bool gsi_post_outgoing(struct gsi *g);
/* Cancels all waiters. gsi_close then drops the queued MADs. */
void gsi_send_close(struct gsi *g);

#endif
