/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes, a link between them, and their clock. */
#ifndef URXE_TEST_PAIR_H
#define URXE_TEST_PAIR_H

#include "link.h"
#include "node.h"

struct pair_attr {
	uint64_t seed;
	uint32_t mtu;         /* of both nodes; 0 = 4200 */
	uint32_t max_packets; /* this and the next five: as in urxe_dev_attr */
	uint32_t reorder_ns;
	uint32_t probe_ns;
	bool go_back_n[2];
	uint8_t congestion;
	uint64_t link_bps;
	const struct urxe_dcqcn *dcqcn;
	uint32_t mem_size;                    /* of each node; 0 = 1 MiB */
	bool omit_local_icrc;                 /* as in urxe_dev_attr */
	bool same_mac;                        /* both nodes have the MAC address of node 0 */
	bool durable;                         /* memory of both nodes can be made persistent */
	const struct urxe_copy_ops *copy_ops; /* of each node */
};

struct pair {
	struct node *node[2];
	struct link link[2]; /* [i] carries the frames that node i sends */
	uint64_t now;
	uint8_t *frames; /* buffer for one burst */
	uint32_t frame_room;
};

/* State in which a run ended. */
enum pair_result {
	PAIR_IDLE,    /* no frame is on its way and no deadline is set */
	PAIR_TIME_UP, /* `until` was reached */
	PAIR_STUCK,   /* a deadline stays due although the engine was called */
};

/* One QP of a connection, and the context of its callbacks. */
struct endpoint {
	struct node_queue queue; /* must be first: its address is the QP's context */
	struct node *node;
	struct urxe_qp *qp;
	struct urxe_rq *rq; /* the QP's own receive queue, or the SRQ */
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
	uint32_t psn[2]; /* first PSN of node i's packets */
	uint32_t qpn[2]; /* QPN of node i's QP; 0 = the engine chooses */
	struct urxe_rq *srq[2];
	struct urxe_qp_cap cap;
};

struct pair *pair_create(const struct pair_attr *attr);
void pair_destroy(struct pair *pair);
/* Sets the room of the frames that urxe_output gets; it begins as that for the nodes' MTU. */
void pair_set_frame_room(struct pair *pair, uint32_t room);

/* Executes everything that is due now. True: something was due. */
bool pair_step(struct pair *pair);
/* The time of the next event. */
uint64_t pair_next(const struct pair *pair);
/* Runs until `until`, or until no event is left. */
enum pair_result pair_run(struct pair *pair, uint64_t until);
/* Runs until no event is left; any other result within an hour of virtual time fails the test. */
void pair_settle(struct pair *pair);

struct conn_attr conn_default(enum urxe_qp_type type);
struct urxe_path conn_path(enum urxe_net net, const struct node *to);
/* The attributes of one end; conn_mask gives the masks of the three transitions to RTS. */
struct urxe_qp_attr conn_qp_attr(const struct conn_attr *conn, unsigned side, struct node *peer,
				 uint32_t peer_qpn);
uint32_t conn_mask(enum urxe_qp_type type, enum urxe_qp_state to);
/* Creates the QP of one side, in RESET. */
void conn_create(struct pair *pair, const struct conn_attr *conn, unsigned side,
		 struct endpoint *end);
/* RESET to RTS. */
void conn_bring_up(struct pair *pair, const struct conn_attr *conn, unsigned side,
		   struct endpoint *end, struct endpoint *peer);
/* Creates both QPs and brings them to RTS. */
void conn_open(struct pair *pair, const struct conn_attr *conn, struct endpoint end[2]);

#endif
