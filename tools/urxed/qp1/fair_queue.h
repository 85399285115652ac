/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue of small items that several parties share fairly. Each party has a flow, and the flows
 * take turns at the front of the queue. If the queue is full, a new item makes it drop the oldest
 * item of the longest flow; items of flows that are not favoured are dropped before those of
 * favoured flows. So a party that sends much loses its own items, not those of others. gsi.c keeps
 * received frames, and MADs to be sent, in such queues.
 */
#ifndef URXE_URXED_QP1_FAIR_QUEUE_H
#define URXE_URXED_QP1_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define FAIR_QUEUE_ITEMS   512
#define FAIR_QUEUE_ROOM    384 /* largest size of an item, bytes */
#define FAIR_QUEUE_KEY     20  /* size of the key that identifies a flow, bytes */
#define FAIR_QUEUE_BUCKETS 128u

struct fair_flow;

struct fair_item {
	TAILQ_ENTRY(fair_item) link;
	struct fair_flow *flow;
	uint32_t len;
	uint8_t data[FAIR_QUEUE_ROOM] __attribute__((aligned(8)));
};
TAILQ_HEAD(fair_items, fair_item);

struct fair_flow {
	TAILQ_ENTRY(fair_flow) link; /* in fair_queue.turns, or unused */
	LIST_ENTRY(fair_flow) key_link;
	uint8_t key[FAIR_QUEUE_KEY];
	bool favoured;
	uint32_t n;
	struct fair_items items; /* oldest first */
};
TAILQ_HEAD(fair_flows, fair_flow);

struct fair_queue {
	struct fair_flows turns[2]; /* [1]: favoured flows, [0]: others */
	LIST_HEAD(fair_flow_list, fair_flow) by_key[FAIR_QUEUE_BUCKETS];
	struct fair_flows unused_flows;
	struct fair_items unused;
	uint32_t n;
	struct fair_flow flows[FAIR_QUEUE_ITEMS];
	struct fair_item items[FAIR_QUEUE_ITEMS];
};

void fair_queue_init(struct fair_queue *q);
/*
 * Adds an item of at most FAIR_QUEUE_ROOM bytes to the flow with that key. Returns false if the
 * queue was full. Then another item was dropped; or this one, if its flow is not favoured and all
 * flows in the queue are.
 */
bool fair_queue_put(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY], bool favoured,
		    const void *data, uint32_t len);
/* Copies the next item to data (FAIR_QUEUE_ROOM bytes), and removes it. Returns its length; 0 = the
 * queue is empty. All favoured flows come before the others. */
uint32_t fair_queue_take(struct fair_queue *q, void *data);
/* As fair_queue_take, for the oldest item of the flow with that key; 0 = the flow has none. */
uint32_t fair_queue_take_from(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY], void *data);

#endif
