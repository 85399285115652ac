/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bad cable. Each frame sent through it is copied into a queue ordered by the
 * time at which it is due, and passed to the port below by the first later call
 * that says that this time has come. Same seed and same calls, same faults.
 */
#include <errno.h>
#include <stdlib.h>

#include "buffer.h"
#include "port.h"
#include "prng.h"

/* Frames held before senders are refused: 64 connections' windows of 64 packets. */
#define HELD_MAX 4096

struct held {
	uint64_t due;
	uint64_t seq; /* of frames due at the same time, the earlier sent goes first */
	struct frame_buffer buf;
};

struct fault_port {
	struct netdev netdev;
	struct netdev *below;
	struct netdev_fault fault;
	struct netdev_fault_counters counters;
	struct prng prng;
	uint64_t seq;
	/* A binary heap in the first count; the rest keep their memory for reuse. */
	struct held *held;
	uint32_t count, allocated;
};

static struct fault_port *to_fault(struct netdev *port)
{
	return (struct fault_port *)port;
}

static bool held_before(const struct held *a, const struct held *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void held_swap(struct held *a, struct held *b)
{
	struct held t = *a;

	*a = *b;
	*b = t;
}

static void heap_up(struct held *heap, uint32_t i)
{
	for (; i && held_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		held_swap(&heap[i], &heap[(i - 1) / 2]);
}

static void heap_down(struct held *heap, uint32_t count, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < count && held_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || held_before(&heap[i], &heap[child]))
			return;
		held_swap(&heap[i], &heap[child]);
		i = child;
	}
}

static void pop(struct fault_port *port)
{
	held_swap(&port->held[0], &port->held[--port->count]);
	heap_down(port->held, port->count, 0);
}

/* What the port below refuses stays at the head and is offered again. */
static void release_due(struct fault_port *port, uint64_t now)
{
	while (port->count && port->held[0].due <= now) {
		struct netdev_frame frame = frame_buffer_view(&port->held[0].buf);

		if (!netdev_tx(port->below, now, &frame, 1))
			return;
		port->counters.passed++;
		pop(port);
	}
}

static bool reserve(struct fault_port *port, uint32_t n)
{
	uint32_t size = port->allocated ? 2 * port->allocated : 16;
	struct held *held;

	if (port->count + n <= port->allocated)
		return true;
	if (port->count + n > HELD_MAX)
		return false;
	held = realloc(port->held, size * sizeof(*held));
	if (!held)
		return false;
	memset(held + port->allocated, 0, (size - port->allocated) * sizeof(*held));
	port->held = held;
	port->allocated = size;
	return true;
}

static void flip_bit(struct fault_port *port, struct frame_buffer *buf)
{
	uint64_t bit = prng_below(&port->prng, (uint64_t)buf->len * 8);

	if (!buf->len)
		return;
	buf->data[bit / 8] ^= 1u << bit % 8;
	port->counters.corrupted++;
}

/* A held frame carries the time at which it falls due. */
static void hold(struct fault_port *port, const struct netdev_frame *frame, uint64_t due,
		 bool corrupt)
{
	struct held *held = &port->held[port->count];

	if (!frame_buffer_fill(&held->buf, frame, due)) {
		port->counters.dropped++;
		return;
	}
	if (corrupt)
		flip_bit(port, &held->buf);
	held->due = due;
	held->seq = port->seq++;
	heap_up(port->held, port->count++);
}

/* All dice are thrown for each frame, so that one probability does not disturb the others. */
static void spoil(struct fault_port *port, uint64_t now, const struct netdev_frame *frame)
{
	const struct netdev_fault *fault = &port->fault;
	bool drop = prng_chance(&port->prng, fault->drop);
	bool duplicate = prng_chance(&port->prng, fault->duplicate);
	bool reorder = prng_chance(&port->prng, fault->reorder);
	bool corrupt = prng_chance(&port->prng, fault->corrupt);
	uint64_t lag = 1 + prng_below(&port->prng, fault->reorder_ns);
	uint64_t due = now + fault->delay_ns;

	if (drop) {
		port->counters.dropped++;
		return;
	}
	hold(port, frame, reorder ? due + lag : due, corrupt);
	port->counters.reordered += reorder;
	if (duplicate) {
		hold(port, frame, due, false);
		port->counters.duplicated++;
	}
}

static uint32_t fault_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			 uint32_t n)
{
	struct fault_port *port = to_fault(netdev);
	uint32_t i;

	release_due(port, now);
	for (i = 0; i < n && reserve(port, 2); i++)
		spoil(port, now, &frames[i]);
	release_due(port, now);
	return i;
}

static uint32_t fault_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			 uint32_t n)
{
	struct fault_port *port = to_fault(netdev);

	release_due(port, now);
	return netdev_rx(port->below, now, frames, n);
}

static uint64_t fault_next_deadline(struct netdev *netdev)
{
	struct fault_port *port = to_fault(netdev);
	uint64_t below = netdev_next_deadline(port->below);

	return port->count && port->held[0].due < below ? port->held[0].due : below;
}

static int fault_wait_fd(struct netdev *netdev)
{
	return netdev_wait_fd(to_fault(netdev)->below);
}

static void fault_close(struct netdev *netdev)
{
	struct fault_port *port = to_fault(netdev);
	uint32_t i;

	netdev_close(port->below);
	for (i = 0; i < port->allocated; i++)
		free(port->held[i].buf.data);
	free(port->held);
	free(port);
}

static const struct netdev_ops fault_ops = {
	.rx = fault_rx,
	.tx = fault_tx,
	.next_deadline = fault_next_deadline,
	.wait_fd = fault_wait_fd,
	.close = fault_close,
};

/* Written so that NaN fails. */
static bool is_probability(double p)
{
	return p >= 0 && p <= 1;
}

int netdev_fault_open(struct netdev *below, const struct netdev_fault *fault, struct netdev **port)
{
	struct fault_port *new;

	if (!is_probability(fault->drop) || !is_probability(fault->duplicate) ||
	    !is_probability(fault->reorder) || !is_probability(fault->corrupt))
		return -EINVAL;
	if (fault->delay_ns > NETDEV_FAULT_NS_MAX || fault->reorder_ns > NETDEV_FAULT_NS_MAX ||
	    (fault->reorder > 0 && !fault->reorder_ns))
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->netdev.ops = &fault_ops;
	new->below = below;
	new->fault = *fault;
	prng_seed(&new->prng, fault->seed);
	*port = &new->netdev;
	return 0;
}

void netdev_fault_counters(const struct netdev *port, struct netdev_fault_counters *counters)
{
	*counters = ((const struct fault_port *)port)->counters;
}
