/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One of the two processes: its objects, what the peer has to know of them, and its log. */
#ifndef URXE_SMOKE_RANDOM_SIDE_H
#define URXE_SMOKE_RANDOM_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum {
	PDS = 2,
	WINDOWS = 3,
	/* Operations change the first regions: one half of them has the payload of messages, the
	 * other half receives it. Then comes a fixed region in each PD, which receives. */
	HALF_REGIONS = 3,
	FIXED_REGION = 2 * HALF_REGIONS,
	REGIONS = FIXED_REGION + PDS,
};

/* The queue pairs. The marker's has a message after each operation. */
enum { QP_RC, QP_RC_OTHER_PD, QP_UC, QP_UD, QP_RC_SRQ, QPS, QP_MARKER = QPS, ALL_QPS };

#define QP_DEPTH    64 /* work requests outstanding, each way */
#define QP_SEGMENTS 4
#define QP_INLINE   64
#define QP_QKEY     0x1234

struct region {
	bool valid;
	int pd, access;
	uint64_t addr;
	uint32_t length, lkey, rkey;
};

struct window {
	bool valid;
	uint64_t addr;
	uint32_t length; /* 0 = not bound yet */
	uint32_t rkey;
	bool bound; /* with type 2, to queue pair `qp` */
	int qp;
};

/* What a side tells the other one. */
struct view {
	union ibv_gid gid;
	uint64_t memory; /* address */
	uint32_t qpns[ALL_QPS];
	struct region regions[REGIONS];
	struct window windows[WINDOWS];
	uint32_t receives[QPS]; /* posted, without a completion */
	bool broken[QPS];       /* to be connected before the next message */
	bool failed;            /* a request of this operation has failed */
};

struct side {
	int number;  /* 0 or 1 */
	int fd;      /* connection to the other side */
	bool errors; /* one request at a time, some with errors; else lists of requests without */
	bool hca;    /* leaves out what an HCA lacks */
	uint8_t gid_index;
	uint32_t last_id; /* of a work request */
	struct ibv_context *context;
	struct ibv_pd *pds[PDS];
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qps[ALL_QPS];
	struct ibv_mr *mrs[REGIONS];
	struct ibv_mw *mws[WINDOWS];
	struct ibv_ah *ah;
	uint8_t *memory;
	uint32_t sends[ALL_QPS]; /* posted, without a completion */
	struct view own, peer;
};

enum ibv_qp_type side_qp_type(int qp);
/* Index of the PD of a queue pair. */
int side_qp_pd(int qp);
/* Index of the queue pair with that number, own or the peer's; -1: none. */
int side_find_qp(const struct view *view, uint32_t qpn);

/* Opens the device, and creates the objects, but for regions and windows. Exits on failure. */
void side_open(struct side *side, const char *device);
/* Destroys all objects. Exits on failure. */
void side_close(struct side *side);
/* Waits for the other side to come to the same call, and exchanges the views. Exits if it ends. */
void side_exchange(struct side *side);
/* Exits if the other side has ended. */
void side_check_peer(const struct side *side);

/* Adds a line to the log. */
void side_log(const struct side *side, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Side 0 prints both sides' lines, and both logs are empty again. */
void side_print(const struct side *side);

#endif
