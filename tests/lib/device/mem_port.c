/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mem_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "frame_buffer.h"
#include "netdev_ops.h"

struct mem_ring {
	_Atomic uint32_t head; /* frames sent; the sender writes it */
	_Atomic uint32_t tail; /* frames released; the receiver writes it */
	uint32_t borrowed;     /* frames from tail on that the receiver still reads */
	struct frame_buffer *slots;
};

struct mem_port {
	struct netdev netdev;
	struct mem_pair *pair;
	struct mem_ring *rx, *tx;
};

struct mem_pair {
	struct mem_port ports[2];
	struct mem_ring rings[2];
	uint32_t depth;
	uint32_t mask; /* slots - 1, a power of two: head and tail count up and wrap at 2^32 */
	_Atomic uint32_t open;
};

static struct mem_port *to_mem(struct netdev *port)
{
	return (struct mem_port *)port;
}

static uint32_t mem_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames, uint32_t n)
{
	struct mem_port *port = to_mem(netdev);
	struct mem_ring *ring = port->rx;
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->borrowed;
	uint32_t ready = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
	uint32_t i;

	(void)now;
	if (n > ready)
		n = ready;
	for (i = 0; i < n; i++)
		frames[i] = frame_buffer_view(&ring->slots[(tail + i) & port->pair->mask]);
	ring->borrowed = n;
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
	return n;
}

static uint32_t mem_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
		       uint32_t n)
{
	struct mem_port *port = to_mem(netdev);
	struct mem_ring *ring = port->tx;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint32_t room = port->pair->depth - used;
	uint32_t i;

	(void)now;
	if (n > room)
		n = room;
	for (i = 0; i < n; i++)
		if (!frame_buffer_fill(&ring->slots[(head + i) & port->pair->mask], &frames[i], 0))
			break;
	atomic_store_explicit(&ring->head, head + i, memory_order_release);
	return i;
}

static void mem_pair_free(struct mem_pair *pair)
{
	uint32_t i, slot;

	for (i = 0; i < 2; i++) {
		for (slot = 0; pair->rings[i].slots && slot <= pair->mask; slot++)
			free(pair->rings[i].slots[slot].data);
		free(pair->rings[i].slots);
	}
	free(pair);
}

/* The other end may still send until its ring is full. */
static void mem_close(struct netdev *netdev)
{
	struct mem_pair *pair = to_mem(netdev)->pair;

	if (atomic_fetch_sub(&pair->open, 1) == 1)
		mem_pair_free(pair);
}

static const struct netdev_ops mem_ops = {.rx = mem_rx, .tx = mem_tx, .close = mem_close};

int netdev_mem_pair(uint32_t depth, struct netdev *ends[2])
{
	struct mem_pair *pair;
	uint32_t i;

	if (!depth || depth > NETDEV_MEM_DEPTH_MAX)
		return -EINVAL;
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	pair->depth = depth;
	while (pair->mask < depth - 1)
		pair->mask = pair->mask << 1 | 1;
	pair->open = 2;
	for (i = 0; i < 2; i++) {
		pair->ports[i].netdev.ops = &mem_ops;
		pair->ports[i].pair = pair;
		pair->ports[i].rx = &pair->rings[i];
		pair->ports[i].tx = &pair->rings[!i];
		pair->rings[i].slots = calloc(pair->mask + 1, sizeof(*pair->rings[i].slots));
		if (!pair->rings[i].slots) {
			mem_pair_free(pair);
			return -ENOMEM;
		}
	}
	ends[0] = &pair->ports[0].netdev;
	ends[1] = &pair->ports[1].netdev;
	return 0;
}
