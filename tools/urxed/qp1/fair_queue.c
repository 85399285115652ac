/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/qp1/fair_queue.h"

#include <string.h>

void fair_queue_init(struct fair_queue *q)
{
	memset(q, 0, sizeof(*q));
	TAILQ_INIT(&q->turns[false]);
	TAILQ_INIT(&q->turns[true]);
	TAILQ_INIT(&q->unused_flows);
	TAILQ_INIT(&q->unused);
	for (uint32_t i = 0; i < FAIR_QUEUE_ITEMS; i++) {
		TAILQ_INSERT_TAIL(&q->unused_flows, &q->flows[i], link);
		TAILQ_INSERT_TAIL(&q->unused, &q->items[i], link);
	}
}

/* Needs no secret hash. Parties can choose keys that share one bucket, but a search of that bucket
 * costs no more than one of all flows. */
static struct fair_flow_list *find_bucket(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY])
{
	uint32_t sum = 0;

	for (int i = 0; i < FAIR_QUEUE_KEY; i++)
		sum = sum * 31 + key[i];
	return &q->by_key[sum % FAIR_QUEUE_BUCKETS];
}

static struct fair_flow *find_flow(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY])
{
	struct fair_flow *flow;

	LIST_FOREACH(flow, find_bucket(q, key), key_link)
	if (!memcmp(flow->key, key, FAIR_QUEUE_KEY))
		return flow;
	return NULL;
}

/* Always finds an unused flow, because a flow in use has at least one item, and there are as many
 * flows as items. */
static struct fair_flow *add_flow(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY],
				  bool favoured)
{
	struct fair_flow *flow = TAILQ_FIRST(&q->unused_flows);

	TAILQ_REMOVE(&q->unused_flows, flow, link);
	memcpy(flow->key, key, FAIR_QUEUE_KEY);
	flow->favoured = favoured;
	flow->n = 0;
	TAILQ_INIT(&flow->items);
	TAILQ_INSERT_TAIL(&q->turns[favoured], flow, link);
	LIST_INSERT_HEAD(find_bucket(q, key), flow, key_link);
	return flow;
}

static void remove_item(struct fair_queue *q, struct fair_item *item)
{
	struct fair_flow *flow = item->flow;

	TAILQ_REMOVE(&flow->items, item, link);
	TAILQ_INSERT_HEAD(&q->unused, item, link);
	q->n--;
	if (--flow->n)
		return;
	TAILQ_REMOVE(&q->turns[flow->favoured], flow, link);
	LIST_REMOVE(flow, key_link);
	TAILQ_INSERT_HEAD(&q->unused_flows, flow, link);
}

/* Returns the longest flow; of several such flows, the one whose turn comes first. */
static struct fair_flow *find_longest(const struct fair_queue *q, bool favoured)
{
	struct fair_flow *longest = NULL, *flow;

	TAILQ_FOREACH(flow, &q->turns[favoured], link)
	if (!longest || flow->n > longest->n)
		longest = flow;
	return longest;
}

/* Drops an item to make room for one of a flow that is `favoured` or not. Returns false if that
 * flow may displace none of the flows in the queue. */
static bool drop_one(struct fair_queue *q, bool favoured)
{
	struct fair_flow *longest = find_longest(q, false);

	if (!longest && favoured)
		longest = find_longest(q, true);
	if (!longest)
		return false;
	remove_item(q, TAILQ_FIRST(&longest->items));
	return true;
}

bool fair_queue_put(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY], bool favoured,
		    const void *data, uint32_t len)
{
	bool full = TAILQ_EMPTY(&q->unused);
	struct fair_flow *flow;
	struct fair_item *item;

	if (full && !drop_one(q, favoured))
		return false;
	flow = find_flow(q, key);
	if (!flow)
		flow = add_flow(q, key, favoured);
	item = TAILQ_FIRST(&q->unused);
	TAILQ_REMOVE(&q->unused, item, link);
	item->flow = flow;
	item->len = len;
	memcpy(item->data, data, len);
	TAILQ_INSERT_TAIL(&flow->items, item, link);
	flow->n++;
	q->n++;
	return !full;
}

static uint32_t take_item(struct fair_queue *q, struct fair_flow *flow, void *data)
{
	struct fair_item *item = TAILQ_FIRST(&flow->items);
	uint32_t len = item->len;

	memcpy(data, item->data, len);
	remove_item(q, item);
	return len;
}

uint32_t fair_queue_take(struct fair_queue *q, void *data)
{
	bool favoured = !TAILQ_EMPTY(&q->turns[true]);
	struct fair_flow *flow = TAILQ_FIRST(&q->turns[favoured]);

	if (!flow)
		return 0;
	TAILQ_REMOVE(&q->turns[favoured], flow, link);
	TAILQ_INSERT_TAIL(&q->turns[favoured], flow, link);
	return take_item(q, flow, data);
}

uint32_t fair_queue_take_from(struct fair_queue *q, const uint8_t key[FAIR_QUEUE_KEY], void *data)
{
	struct fair_flow *flow = find_flow(q, key);

	return flow ? take_item(q, flow, data) : 0;
}
