/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

/* --- Saving. The tag of an object is the address of its context, which stays. */

static uint64_t on_tag(void *arg, enum urxe_state_kind kind, void *ctx)
{
	(void)arg, (void)kind;
	return (uintptr_t)ctx;
}

bool move_completion(void *arg, void *cq_ctx, uint32_t i, struct urxe_wc *wc)
{
	const struct node_cq *cq = cq_ctx;

	(void)arg;
	if (i >= cq->tail - cq->head)
		return false;
	*wc = cq->ring[(cq->head + i) % NODE_CQ_DEPTH];
	return true;
}

void move_save(struct node *node, uint64_t now, uint8_t **stream, size_t *length)
{
	const struct urxe_state_save how = {
		.arg = node, .tag = on_tag, .completion = move_completion};

	require(urxe_state_save(node->dev, now, &how, stream, length) == 0);
}

/* Destroys the device, and moves the memory to another address. */
static void move_leave(struct node *node)
{
	uint8_t *mem = malloc(node->mem_size);

	require(mem);
	urxe_dev_destroy(node->dev);
	node->dev = NULL;
	memcpy(mem, node->mem, node->mem_size);
	memset(node->mem, 0xdd, node->mem_size);
	node->old_mem = (uintptr_t)node->mem;
	free(node->mem);
	node->mem = mem;
}

/* --- Restoration. */

struct restoration {
	struct node *node;
	void (*restored)(void *arg, const struct urxe_state_object *object);
	void *arg;
	struct urxe_extent *extents;
};

static bool is_cq_of(const struct node *node, const struct node_cq *cq)
{
	return cq == &node->send_cq || cq == &node->recv_cq;
}

/* A CQ begins empty, because its completions follow. */
static void *on_context(void *arg, const struct urxe_state_object *object)
{
	const struct restoration *r = arg;
	struct node_cq *cq = (struct node_cq *)(uintptr_t)object->tag;

	if (object->kind == URXE_STATE_CQ && is_cq_of(r->node, cq))
		cq->head = cq->tail = 0;
	return cq;
}

/* The same offsets in the new memory. */
static int on_memory(void *arg, struct urxe_state_region *region)
{
	struct restoration *r = arg;

	free(r->extents);
	r->extents = calloc(region->n_extents + 1u, sizeof(*r->extents));
	require(r->extents);
	for (uint32_t i = 0; i < region->n_extents; i++) {
		r->extents[i] = region->extents[i];
		if (r->extents[i].addr)
			r->extents[i].addr =
				r->node->mem + ((uintptr_t)r->extents[i].addr - r->node->old_mem);
	}
	region->extents = r->extents;
	return 0;
}

static int on_completion(void *arg, void *cq_ctx, const struct urxe_wc *wc)
{
	struct node_cq *cq = cq_ctx;

	(void)arg;
	if (cq->tail - cq->head == NODE_CQ_DEPTH)
		return -ENOSPC;
	cq->ring[cq->tail++ % NODE_CQ_DEPTH] = *wc;
	return 0;
}

static void on_restored(void *arg, const struct urxe_state_object *object)
{
	const struct restoration *r = arg;
	struct node *node = r->node;

	if (object->kind == URXE_STATE_CQ && object->tag == (uintptr_t)&node->send_cq)
		node->send_cq.cq = object->cq;
	if (object->kind == URXE_STATE_CQ && object->tag == (uintptr_t)&node->recv_cq)
		node->recv_cq.cq = object->cq;
	if (object->kind == URXE_STATE_MR && object->id == node->key)
		node->mr = object->mr;
	if (r->restored)
		r->restored(r->arg, object);
}

int move_restore(struct node *node, uint64_t now, const uint8_t *stream, size_t length,
		 void (*restored)(void *arg, const struct urxe_state_object *object), void *arg)
{
	struct restoration r = {.node = node, .restored = restored, .arg = arg};
	const struct urxe_state_restore how = {
		.arg = &r,
		.context = on_context,
		.memory = on_memory,
		.completion = on_completion,
		.restored = on_restored,
	};
	struct urxe_state_attr saved;
	int rc = urxe_state_read_attr(stream, length, &saved);

	if (rc)
		return rc;
	saved.attr.ctx = node;
	saved.attr.ops = node->ops;
	saved.attr.copy_ops = node->copy_ops;
	saved.attr.copy_ctx = node;
	saved.attr.copy_table = node->table;
	rc = urxe_state_restore(&saved.attr, now, &how, stream, length, &node->dev);
	free(r.extents);
	return rc;
}

/* --- A node of a pair. */

struct ends {
	struct endpoint *const *end;
	uint32_t n;
};

static void restore_qp(void *arg, const struct urxe_state_object *object)
{
	const struct ends *ends = arg;

	if (object->kind != URXE_STATE_QP)
		return;
	for (uint32_t i = 0; i < ends->n; i++) {
		struct endpoint *end = ends->end[i];

		if (end->qpn != object->id)
			continue;
		end->qp = object->qp;
		if (urxe_qp_rq(end->qp))
			end->rq = urxe_qp_rq(end->qp);
	}
}

void move_node(struct pair *pair, unsigned side, struct endpoint *const end[], uint32_t n)
{
	struct node *node = pair->node[side];
	struct ends ends = {end, n};
	uint8_t *stream;
	size_t length;

	move_save(node, pair->now, &stream, &length);
	move_leave(node);
	require(move_restore(node, pair->now, stream, length, restore_qp, &ends) == 0);
	urxe_state_free(stream);
}
