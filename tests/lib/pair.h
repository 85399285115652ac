/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes, a cable between them, and the clock of their world. */
#ifndef URXE_TEST_PAIR_H
#define URXE_TEST_PAIR_H

#include "link.h"
#include "node.h"

struct pair_attr {
	uint64_t seed;
	uint32_t mtu;         /* of both nodes, 0 = 4200 */
	uint32_t max_packets; /* as in urxe_dev_attr, and the next five */
	uint32_t reorder_ns;
	uint32_t probe_ns;
	bool go_back_n[2];
	uint8_t congestion;
	uint64_t link_bps;
	const struct urxe_dcqcn *dcqcn;
	uint32_t mem_size;                    /* of each node, 0 = 1 MiB */
	bool durable;                         /* of each node: its memory can be made to last */
	const struct urxe_direct_ops *direct; /* of each node */
};

struct pair {
	struct node *node[2];
	struct link link[2]; /* [i] carries what node i sends */
	uint64_t now;
	uint8_t *frames; /* room for a burst */
	uint32_t frame_room;
};

/* What became of a world that was let run. */
enum pair_result {
	PAIR_IDLE,    /* nothing is on the way and no deadline is set */
	PAIR_TIME_UP, /* `until` was reached */
	PAIR_STUCK,   /* a deadline stays due although nothing comes of it */
};

/* One QP of a connection, and the context its callbacks get. */
struct endpoint {
	struct node_queue queue; /* first: it is the QP's context */
	struct node *node;
	struct urxe_qp *qp;
	struct urxe_rq *rq; /* its own, or the SRQ */
	uint32_t qpn;
};

struct conn_attr {
	uint8_t type; /* enum urxe_qp_type */
	uint8_t net;  /* enum urxe_net */
	uint8_t path_mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	bool sq_sig_all;
	uint32_t access;
	uint32_t qkey;
	uint32_t psn[2]; /* first PSN that node i sends */
	uint32_t qpn[2]; /* of the QP of node i; 0 = the engine chooses */
	struct urxe_rq *srq[2];
	struct urxe_qp_cap cap;
};

struct pair *pair_create(const struct pair_attr *attr);
void pair_destroy(struct pair *pair);

/* Everything in the world that is due by now. True: something happened. */
bool pair_step(struct pair *pair);
/* When something happens next by itself. */
uint64_t pair_next(const struct pair *pair);
/* Lets time pass up to `until`, or until nothing moves any more. */
enum pair_result pair_run(struct pair *pair, uint64_t until);
/* The same, without an end; anything but PAIR_IDLE within an hour ends the test. */
void pair_settle(struct pair *pair);

struct conn_attr conn_default(enum urxe_qp_type type);
struct urxe_path conn_path(enum urxe_net net, const struct node *to);
/* The attributes of one end, and the masks of the three steps to RTS. */
struct urxe_qp_attr conn_qp_attr(const struct conn_attr *conn, unsigned side, struct node *peer,
				 uint32_t peer_qpn);
uint32_t conn_mask(enum urxe_qp_type type, enum urxe_qp_state to);
/* Creates the QP of one side; its state is RESET. */
void conn_create(struct pair *pair, const struct conn_attr *conn, unsigned side,
		 struct endpoint *end);
/* RESET to RTS. */
void conn_bring_up(struct pair *pair, const struct conn_attr *conn, unsigned side,
		   struct endpoint *end, struct endpoint *peer);
/* Both QPs, up to RTS. */
void conn_open(struct pair *pair, const struct conn_attr *conn, struct endpoint end[2]);

#endif
