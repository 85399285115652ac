/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host: one engine, two completion queues, and one registered memory, whose addresses differ from
 * the pointers on purpose.
 */
#ifndef URXE_TEST_NODE_H
#define URXE_TEST_NODE_H

#include <rxe/rxe.h>

#define NODE_PD        7
#define NODE_CQ_DEPTH  4096
#define NODE_PERSISTED 16
#define NODE_PAGES     8
#define NODE_ACCESS                                                                     \
	(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | \
	 URXE_ACCESS_REMOTE_ATOMIC)

/* Index in the node's GID table, by network. */
#define NODE_SGID(net) ((uint8_t)(net))

struct node_cq {
	struct urxe_cq *cq;
	struct urxe_wc ring[NODE_CQ_DEPTH];
	uint32_t head, tail;
	uint32_t depth;  /* number of completions before the queue counts as full */
	uint32_t events; /* comp_event calls */
};

struct node_attr {
	uint8_t id;
	uint8_t mac_id; /* last byte of the MAC address; 0 = id */
	bool omit_local_icrc;
	uint64_t seed;
	uint32_t mtu;         /* 0 = 4200: a path MTU of 4096 fits */
	uint32_t max_packets; /* this and the next five: as in urxe_dev_attr */
	uint32_t reorder_ns;
	uint32_t probe_ns;
	bool go_back_n;
	uint8_t congestion;
	uint64_t link_bps;
	const struct urxe_dcqcn *dcqcn;
	uint32_t mem_size; /* 0 = 1 MiB */
	bool durable;      /* the memory can be made persistent */
	const struct urxe_copy_ops
		*copy_ops; /* operations of the copy transport, which gives the node a table */
};

/* An asynchronous event. */
#define NODE_EVENTS 64u
struct node_event {
	enum urxe_async event;
	void *obj;
};

struct node {
	struct urxe_dev *dev;
	uint8_t id; /* of its GIDs */
	uint8_t mac[6];
	struct node_cq send_cq;
	struct node_cq recv_cq;
	const struct urxe_ops *ops; /* of dev */
	const struct urxe_copy_ops *copy_ops;
	uint8_t *mem;
	uintptr_t old_mem; /* its address before the node moved (move.h) */
	uint32_t mem_size;
	uint64_t iova; /* of mem[0] */
	struct urxe_mr *mr;
	uint32_t key; /* lkey and rkey of all of mem, with every access right */
	uint32_t async[32];
	void *async_obj[32]; /* the object of the last event of each kind */
	struct node_event
		newest[NODE_EVENTS]; /* the number of an event is its index, modulo NODE_EVENTS */
	uint32_t n_events;
	/* Ranges that a durable node has persisted. */
	struct urxe_extent persisted[NODE_PERSISTED]; /* the first ranges */
	struct urxe_extent pages[NODE_PAGES];         /* of the newest fast registration */
	uint32_t n_persisted;
	bool persist_fails;
	bool references;          /* a node with a table may send payload references */
	bool path_cut;            /* answer of urxe_ops.path_cut */
	bool memory_gone;         /* accesses to registered memory fail */
	const uint8_t *byte_gone; /* or accesses to this byte only */
	struct urxe_copy_table *table;
	void *arg; /* of copy operations */
};

/* The context of a QP and of a receive queue. */
struct node_queue {
	struct node *node;
	uint32_t refills; /* number of calls of refill */
	uint32_t retired; /* number of calls of send_retired, or of an SRQ's recv_retired */
	void (*refill)(struct node_queue *queue);
	void *arg;
};

struct node *node_create(const struct node_attr *attr);
void node_destroy(struct node *node);

/* A segment of the node's memory. */
struct urxe_seg node_seg(const struct node *node, uint32_t offset, uint32_t length);
/* Registers length bytes at mem[offset] a second time; returns the region. */
struct urxe_mr *node_reg(struct node *node, uint32_t pd, uint32_t access, uint32_t offset,
			 uint32_t length);
bool node_poll(struct node_cq *cq, struct urxe_wc *wc);

#endif
