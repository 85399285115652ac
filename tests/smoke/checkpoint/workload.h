/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two programs that exchange messages without end, and check each byte of them: SENDs, WRITEs that
 * are read back, and fetch-and-adds. Half of the connections share a receive queue, but
 * with WORK_PLAIN. Each request completes once and in order, each message arrives once and in
 * order.
 */
#ifndef URXE_TEST_WORKLOAD_H
#define URXE_TEST_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define CONNECTIONS 4
#define DEPTH       4  /* requests of a connection that are outstanding */
#define RECEIVES    32 /* receive requests of a queue */
#define SEND_MAX    65536
#define WRITE_MAX   (512u << 10)

/* Which objects and requests a workload has. */
enum work {
	WORK_ALL,
	WORK_SHARED, /* no memory window, on-demand region or ID of rdma_cm */
	WORK_PLAIN,  /* the same, and no shared receive queue */
	WORK_SENDS,  /* as WORK_SHARED, and all requests are SENDs: the peer has no remote rights */
};

/* What a program tells its peer. */
struct address {
	union ibv_gid gid;
	uint32_t qpn[CONNECTIONS];
	uint64_t base[CONNECTIONS]; /* of the regions, */
	uint32_t rkey[CONNECTIONS]; /* and their keys */
};

struct connection {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct region *region;
	bool shared; /* receives come from the shared queue */
	uint64_t posted, completed, received;
};

struct workload {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL: polls */
	struct ibv_cq *cq[2];             /* of sends and receives */
	struct ibv_srq *srq;
	struct ibv_mr *srq_mr;
	uint8_t (*srq_buffers)[SEND_MAX];
	struct connection connections[CONNECTIONS];
	/* Objects that nobody uses: */
	struct ibv_context *second; /* the same device, opened once more, with a CQ */
	struct ibv_cq *second_cq;
	struct ibv_comp_channel *second_channel; /* without a CQ */
	int duplicate;                           /* of the device's descriptor */
	int rdma_cm;                             /* the open device rdma_cm, */
	uint32_t rdma_cm_id;                     /* and an ID of it, */
	bool has_id;                             /* unless it is destroyed */
	uint32_t id_events;                      /* of the ID that were fetched */
	struct ibv_mr *empty_mr;                 /* of length 0 */
	struct ibv_mr *implicit_mr;              /* of all memory, on demand */
	struct ibv_mr *freed_mr;                 /* its memory is unmapped */
	struct ibv_mr *protected_mr;             /* the first page of `protected` is read-only */
	uint8_t *protected;
	struct ibv_mr *holed_mr; /* the second page of `holed` is unmapped, */
	uint8_t *holed;          /* which is not in the arena */
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *idle_qp;
	struct ibv_cq *idle_cq;
	struct address self, peer;
	enum work kind;
	uint8_t side; /* 0 or 1 */
	bool paused;  /* posts no sends */
	bool broken;  /* something went wrong, and was reported */
};

/* Functions end the program if a verb fails. */
struct workload *workload_open(const char *device, int gid_index, uint8_t side, bool events,
			       enum work kind);
void workload_connect(struct workload *w, const struct address *peer, int gid_index);
/* Posts what may be posted, and handles completions. Returns the number of completions. */
unsigned int workload_step(struct workload *w);
void workload_arm(struct workload *w);
/* Waits for an event of the channel. */
void workload_wait(struct workload *w);
/* Protects the page of protected_mr, and maps the page of holed_mr. A checkpointer restores all
 * mappings and their protection. */
void workload_map(struct workload *w);
/* Resolves an address for the ID of rdma_cm, and fetches the event of it. */
void workload_resolve(struct workload *w);
/* Destroys the ID of rdma_cm. */
void workload_destroy_id(struct workload *w);
/* Destroys all objects. */
void workload_close(struct workload *w);
/* What the peer has added to the counter of the connection. */
uint64_t workload_counter(const struct workload *w, int connection);

#endif
