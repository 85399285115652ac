/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A connection between two simulated hosts: attributes, QPs, and a stream in each direction. */
#ifndef URXE_SIM_HOST_SIMCONN_H
#define URXE_SIM_HOST_SIMCONN_H

#include "sim/host/change.h"
#include "sim/host/drain.h"
#include "sim/host/failure.h"
#include "sim/host/simhost.h"
#include "sim/host/stream.h"

struct recv_queue;
struct simconn;

struct simconn_attr {
	uint8_t type; /* enum urxe_qp_type */
	uint8_t net;  /* enum urxe_net */
	uint8_t path_mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t rd_atomic;
	bool sq_sig_all;
	uint32_t psn[2]; /* first PSN that end i sends */
	struct urxe_qp_cap cap;
};

/* One end of a connection. */
struct endpoint {
	struct recv_queue *recv_queue; /* the first member: see SIMHOST_RECV_QUEUE */
	struct simconn *conn;
	struct simhost *host;
	unsigned side; /* index in conn->end; 0 = the end that opens the connection */
	uint32_t qpn;
	struct urxe_qp *qp;
	/* Numbers of asynchronous events of the QP, by enum urxe_async. */
	uint32_t n_events[URXE_ASYNC_QP_LAST_WQE_REACHED + 1];
	struct drain drain;
	struct change change;
	bool in_error;    /* the application has moved the QP to the error state */
	uint32_t flushed; /* receives of the QP that ended with a flush error */
};

struct simconn {
	struct simconn_attr attr;
	struct endpoint end[2];
	struct stream stream[2]; /* [i] goes from end i to the other */
	struct failure failure;
};

#define SIMCONN_QKEY 0x11111111u

/* Chooses all attributes of a connection between two hosts, and reserves its memory. */
void simconn_plan(struct simconn *conn, struct world *world, struct simhost *opener,
		  struct simhost *target);
/* Creates the QPs, moves them to RTS, and fills the memory. */
void simconn_open(struct simconn *conn, struct world *world);
/* Required attributes of a QP's step to the state INIT, RTR or RTS (IBA volume 1, table 96). */
uint32_t simconn_step_mask(uint8_t type, int to);
void simconn_free(struct simconn *conn);
/* The address path from end `side` to the other end. */
struct urxe_path simconn_path(const struct simconn *conn, unsigned side);

#endif
