/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "craft.h"
#include "require.h"

static bool on_complete(void *cq_ctx, const struct urxe_wc *wc)
{
	struct node_cq *cq = cq_ctx;

	if (cq->tail - cq->head >= cq->depth)
		return false;
	cq->ring[cq->tail++ % NODE_CQ_DEPTH] = *wc;
	return true;
}

static void on_comp_event(void *cq_ctx)
{
	struct node_cq *cq = cq_ctx;

	cq->events++;
}

static void on_refill(void *rq_ctx)
{
	struct node_queue *queue = rq_ctx;

	queue->refills++;
	if (queue->refill)
		queue->refill(queue);
}

static void on_retired(void *queue_ctx)
{
	((struct node_queue *)queue_ctx)->retired++;
}

static void on_async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	struct node *node = dev_ctx;

	require((unsigned)event < 32);
	node->async[event]++;
	node->async_obj[event] = obj_ctx;
	node->newest[node->n_events++ % NODE_EVENTS] = (struct node_event){event, obj_ctx};
}

static bool has(const struct urxe_extent *extent, const uint8_t *byte)
{
	const uint8_t *first = extent->addr;

	return byte && byte >= first && byte < first + extent->length;
}

static bool on_guard(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *),
		     void *arg)
{
	struct node *node = dev_ctx;

	require(bytes->length > 0);
	if (node->memory_gone || has(bytes, node->byte_gone))
		return false;
	touch(arg);
	return true;
}

static bool may_reference(void *dev_ctx, const struct urxe_path *path, uint32_t qpn)
{
	const struct node *node = dev_ctx;

	(void)path;
	(void)qpn;
	return node->references && node->table;
}

/* Appends the bytes of one piece of a payload to the extents, of which *done are filled. */
static void place_piece(const struct urxe_extent *to, uint32_t n, uint64_t *done,
			const struct urxe_reference_piece *piece)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)piece->address;
	uint64_t begin = 0, end = *done + piece->length;

	for (uint32_t i = 0; i < n && *done < end; begin += to[i++].length) {
		uint64_t at = *done - begin, part = end - *done;

		if (at >= to[i].length)
			continue;
		if (part > to[i].length - at)
			part = to[i].length - at;
		memcpy((uint8_t *)to[i].addr + at, from, part);
		from += part;
		*done += part;
	}
	require(*done == end);
}

/* The sender of a payload reference is a node of this process. */
static bool pull(void *dev_ctx, const struct urxe_reference *reference,
		 const struct urxe_extent *to, uint32_t n)
{
	struct urxe_reference_piece piece = {reference->address, reference->length};
	const struct node *node = dev_ctx, *sender = reference->sender;
	uint64_t length = 0;

	if (node->memory_gone)
		return false;
	if (!reference->n_pieces)
		place_piece(to, n, &length, &piece);
	for (uint32_t i = 0; i < reference->n_pieces; i++) {
		memcpy(&piece, reference->pieces + i * sizeof(piece), sizeof(piece));
		place_piece(to, n, &length, &piece);
	}
	require(length == reference->length);
	return !sender->table || sender->table->references == reference->generation;
}

static bool path_cut(void *dev_ctx, const struct urxe_path *path)
{
	(void)path;
	return ((const struct node *)dev_ctx)->path_cut;
}

/*
 * Pages of a list of fast registration: n_pages pages of 1 << page_shift bytes from offset
 * page_list of the node's memory on, and between each two of them one that is left out.
 */
static bool on_page_list(void *dev_ctx, const struct urxe_fast_reg *request,
			 const struct urxe_extent **extents, uint32_t *n_extents)
{
	const uint64_t page = UINT64_C(1) << request->page_shift;
	struct node *node = dev_ctx;

	if (request->n_pages > NODE_PAGES)
		return false;
	for (uint32_t i = 0; i < request->n_pages; i++)
		node->pages[i] =
			(struct urxe_extent){node->mem + request->page_list + 2 * i * page, page};
	*extents = node->pages;
	*n_extents = request->n_pages;
	return true;
}

static const struct urxe_ops node_ops = {
	.complete = on_complete,
	.send_retired = on_retired,
	.recv_retired = on_retired,
	.comp_event = on_comp_event,
	.refill = on_refill,
	.async_event = on_async_event,
	.guard = on_guard,
	.may_reference = may_reference,
	.pull = pull,
	.path_cut = path_cut,
	.page_list = on_page_list,
};

static bool on_persist(void *dev_ctx, const struct urxe_extent *bytes)
{
	struct node *node = dev_ctx;

	if (node->persist_fails)
		return false;
	if (node->n_persisted < NODE_PERSISTED)
		node->persisted[node->n_persisted++] = *bytes;
	return true;
}

static const struct urxe_ops durable_ops = {
	.complete = on_complete,
	.send_retired = on_retired,
	.comp_event = on_comp_event,
	.refill = on_refill,
	.async_event = on_async_event,
	.persist = on_persist,
	.guard = on_guard,
};

static void create_dev(struct node *node, const struct node_attr *attr)
{
	const struct urxe_dev_attr dev = {
		.ctx = node,
		.ops = attr->durable ? &durable_ops : &node_ops,
		.mac = {2, 0, 0, 0, 0, attr->mac_id ? attr->mac_id : attr->id},
		.omit_local_icrc = attr->omit_local_icrc,
		.mtu = attr->mtu ? attr->mtu : 4200,
		.qpn_first = 0x1000u * attr->id,
		.qpn_count = 0x1000,
		.seed = attr->seed,
		.max_packets = attr->max_packets,
		.reorder_ns = attr->reorder_ns,
		.probe_ns = attr->probe_ns,
		.go_back_n = attr->go_back_n,
		.congestion = attr->congestion,
		.link_bps = attr->link_bps,
		.dcqcn = attr->dcqcn,
		.copy_ops = attr->copy_ops,
		.copy_ctx = node,
		.copy_table = node->table,
	};

	node->id = attr->id;
	node->ops = dev.ops;
	node->copy_ops = attr->copy_ops;
	memcpy(node->mac, dev.mac, 6);
	require(urxe_dev_create(&dev, &node->dev) == 0);
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		struct urxe_gid gid = craft_gid(net, attr->id);

		require(urxe_gid_set(node->dev, NODE_SGID(net), &gid, net == URXE_NET_ROCEV1) == 0);
	}
}

/* Three extents, two of them of odd length, so that accesses cross their borders. */
static void register_mem(struct node *node)
{
	uint32_t third = node->mem_size / 3 | 1;
	const struct urxe_extent extents[] = {
		{node->mem, third},
		{node->mem + third, third},
		{node->mem + 2 * third, node->mem_size - 2 * third},
	};
	const struct urxe_mr_attr mr = {
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = node->iova,
		.length = node->mem_size,
		.extents = extents,
		.n_extents = 3,
	};

	require(urxe_mr_reg(node->dev, &mr, &node->mr) == 0);
	node->key = urxe_mr_key(node->mr);
}

struct node *node_create(const struct node_attr *attr)
{
	struct node *node = calloc(1, sizeof(*node));

	require(node);
	node->mem_size = attr->mem_size ? attr->mem_size : 1u << 20;
	node->mem = calloc(1, node->mem_size);
	require(node->mem);
	node->iova = 0xabcd00000000u + attr->id * 0x100000000u;
	node->send_cq.depth = node->recv_cq.depth = NODE_CQ_DEPTH;
	if (attr->copy_ops) {
		node->table = aligned_alloc(64, sizeof(*node->table));
		require(node->table);
		memset(node->table, 0, sizeof(*node->table));
	}
	create_dev(node, attr);
	register_mem(node);
	require(urxe_cq_create(node->dev, &node->send_cq, &node->send_cq.cq) == 0);
	require(urxe_cq_create(node->dev, &node->recv_cq, &node->recv_cq.cq) == 0);
	return node;
}

void node_destroy(struct node *node)
{
	if (node->dev)
		urxe_dev_destroy(node->dev);
	free(node->table);
	free(node->mem);
	free(node);
}

struct urxe_seg node_seg(const struct node *node, uint32_t offset, uint32_t length)
{
	return (struct urxe_seg){node->iova + offset, length, node->key};
}

struct urxe_mr *node_reg(struct node *node, uint32_t pd, uint32_t access, uint32_t offset,
			 uint32_t length)
{
	const struct urxe_extent extent = {node->mem + offset, length};
	const struct urxe_mr_attr attr = {
		.pd = pd,
		.access = access,
		.iova = node->iova + offset,
		.length = length,
		.extents = &extent,
		.n_extents = 1,
	};
	struct urxe_mr *mr;

	require(urxe_mr_reg(node->dev, &attr, &mr) == 0);
	return mr;
}

bool node_poll(struct node_cq *cq, struct urxe_wc *wc)
{
	if (cq->head == cq->tail)
		return false;
	*wc = cq->ring[cq->head++ % NODE_CQ_DEPTH];
	return true;
}
