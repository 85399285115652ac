/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bad cable. Each frame that passes, one way or the other, is copied into a queue
 * ordered by the time at which it is due, and goes on with the first later call that
 * says that this time has come. Same seed and same calls, same faults.
 */
#include <errno.h>
#include <stdlib.h>

#include "frame_buffer.h"
#include "port.h"
#include "prng.h"

/* Frames held before senders are refused: 64 connections' windows of 64 packets. */
#define HELD_MAX 4096

#define BURST 32

/* Bursts of one call that may be lost as a whole: who receives has other things to do. */
#define ROUNDS 32

struct held {
	uint64_t due;
	uint64_t seq; /* of frames due at the same time, the earlier sent goes first */
	struct frame_buffer buf;
};

/* One way of the cable. */
struct line {
	struct netdev_fault fault;
	struct netdev_fault_counters counters;
	struct prng prng;
	uint64_t seq;
	/* A binary heap in the first count; the rest keep their memory for reuse. */
	struct held *held;
	uint32_t count, allocated;
};

struct fault_port {
	struct netdev netdev;
	struct netdev *below;
	bool clean_rx; /* what comes in passes by the line */
	struct line tx, rx;
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

static bool is_due(const struct line *line, uint64_t now)
{
	return line->count && line->held[0].due <= now;
}

/* Its memory stays as it is until another frame is held. */
static struct netdev_frame take_first(struct line *line)
{
	held_swap(&line->held[0], &line->held[--line->count]);
	heap_down(line->held, line->count, 0);
	line->counters.passed++;
	return frame_buffer_view(&line->held[line->count].buf);
}

static bool reserve(struct line *line, uint32_t n)
{
	uint32_t size = line->allocated ? line->allocated : 16;
	struct held *held;

	if (line->count + n <= line->allocated)
		return true;
	if (line->count + n > HELD_MAX)
		return false;
	while (size < line->count + n)
		size *= 2;
	held = realloc(line->held, size * sizeof(*held));
	if (!held)
		return false;
	memset(held + line->allocated, 0, (size - line->allocated) * sizeof(*held));
	line->held = held;
	line->allocated = size;
	return true;
}

static void flip_bit(struct line *line, struct frame_buffer *buf)
{
	uint64_t bit = prng_below(&line->prng, (uint64_t)buf->len * 8);

	if (!buf->len)
		return;
	buf->data[bit / 8] ^= 1u << bit % 8;
	line->counters.corrupted++;
}

/* A held frame carries the time at which it falls due. */
static void hold(struct line *line, const struct netdev_frame *frame, uint64_t due, bool corrupt)
{
	struct held *held = &line->held[line->count];

	if (!frame_buffer_fill(&held->buf, frame, due)) {
		line->counters.dropped++;
		return;
	}
	if (corrupt)
		flip_bit(line, &held->buf);
	held->due = due;
	held->seq = line->seq++;
	heap_up(line->held, line->count++);
}

/* All dice are thrown for each frame, so that one probability does not disturb the others. */
static void spoil(struct line *line, uint64_t now, const struct netdev_frame *frame)
{
	const struct netdev_fault *fault = &line->fault;
	bool drop = prng_chance(&line->prng, fault->drop);
	bool duplicate = prng_chance(&line->prng, fault->duplicate);
	bool reorder = prng_chance(&line->prng, fault->reorder);
	bool corrupt = prng_chance(&line->prng, fault->corrupt);
	uint64_t lag = 1 + prng_below(&line->prng, fault->reorder_ns);
	uint64_t due = now + fault->delay_ns;

	if (drop) {
		line->counters.dropped++;
		return;
	}
	hold(line, frame, reorder ? due + lag : due, corrupt);
	line->counters.reordered += reorder;
	if (duplicate) {
		hold(line, frame, due, false);
		line->counters.duplicated++;
	}
}

/* What the port below refuses stays at the head and is offered again. */
static void release_due(struct fault_port *port, uint64_t now)
{
	while (is_due(&port->tx, now)) {
		struct netdev_frame frame = frame_buffer_view(&port->tx.held[0].buf);

		if (!netdev_tx(port->below, now, &frame, 1))
			return;
		take_first(&port->tx);
	}
}

static uint32_t fault_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			 uint32_t n)
{
	struct fault_port *port = to_fault(netdev);
	uint32_t i;

	release_due(port, now);
	for (i = 0; i < n && reserve(&port->tx, 2); i++)
		spoil(&port->tx, now, &frames[i]);
	release_due(port, now);
	return i;
}

/* Goes on while all of a burst is lost or late: nothing to give should mean nothing below. */
static void take_in(struct fault_port *port, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t i, n, rounds = 0;

	do {
		if (rounds++ == ROUNDS || !reserve(&port->rx, 2 * BURST))
			break;
		n = netdev_rx(port->below, now, frames, BURST);
		for (i = 0; i < n; i++)
			spoil(&port->rx, now, &frames[i]);
	} while (n && !is_due(&port->rx, now));
}

static uint32_t fault_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			 uint32_t n)
{
	struct fault_port *port = to_fault(netdev);
	uint32_t i;

	release_due(port, now);
	if (port->clean_rx)
		return netdev_rx(port->below, now, frames, n);
	if (n)
		take_in(port, now);
	for (i = 0; i < n && is_due(&port->rx, now); i++)
		frames[i] = take_first(&port->rx);
	return i;
}

static uint64_t first_due(const struct line *line)
{
	return line->count ? line->held[0].due : UINT64_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t fault_next_deadline(struct netdev *netdev)
{
	struct fault_port *port = to_fault(netdev);

	return earlier(netdev_next_deadline(port->below),
		       earlier(first_due(&port->tx), first_due(&port->rx)));
}

static int fault_wait_fd(struct netdev *netdev)
{
	return netdev_wait_fd(to_fault(netdev)->below);
}

static bool fault_mac(const struct netdev *netdev, uint8_t mac[6])
{
	return netdev_mac(((const struct fault_port *)netdev)->below, mac);
}

static uint32_t fault_mtu(const struct netdev *netdev)
{
	return netdev_mtu(((const struct fault_port *)netdev)->below);
}

static int fault_hear_vlan(struct netdev *netdev, uint16_t vlan)
{
	return netdev_hear_vlan(((struct fault_port *)netdev)->below, vlan);
}

static int fault_hear_all(struct netdev *netdev)
{
	return netdev_hear_all(((struct fault_port *)netdev)->below);
}

static uint64_t fault_page_size(const struct netdev *netdev)
{
	return netdev_page_size(((const struct fault_port *)netdev)->below);
}

static void fault_counters(struct netdev *netdev, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	netdev_counters(to_fault(netdev)->below, counters);
}

static void free_line(struct line *line)
{
	uint32_t i;

	for (i = 0; i < line->allocated; i++)
		free(line->held[i].buf.data);
	free(line->held);
}

static void fault_close(struct netdev *netdev)
{
	struct fault_port *port = to_fault(netdev);

	netdev_close(port->below);
	free_line(&port->tx);
	free_line(&port->rx);
	free(port);
}

static const struct netdev_ops fault_ops = {
	.rx = fault_rx,
	.tx = fault_tx,
	.next_deadline = fault_next_deadline,
	.wait_fd = fault_wait_fd,
	.mac = fault_mac,
	.mtu = fault_mtu,
	.hear_all = fault_hear_all,
	.hear_vlan = fault_hear_vlan,
	.page_size = fault_page_size,
	.counters = fault_counters,
	.close = fault_close,
};

/* Written so that NaN fails. */
static bool is_probability(double p)
{
	return p >= 0 && p <= 1;
}

static bool is_possible(const struct netdev_fault *fault)
{
	return is_probability(fault->drop) && is_probability(fault->duplicate) &&
	       is_probability(fault->reorder) && is_probability(fault->corrupt) &&
	       fault->delay_ns <= NETDEV_FAULT_NS_MAX && fault->reorder_ns <= NETDEV_FAULT_NS_MAX &&
	       !(fault->reorder > 0 && !fault->reorder_ns);
}

static void set_line(struct line *line, const struct netdev_fault *fault)
{
	line->fault = *fault;
	prng_seed(&line->prng, fault->seed);
}

int netdev_fault_open(struct netdev *below, const struct netdev_fault *tx,
		      const struct netdev_fault *rx, struct netdev **port)
{
	struct fault_port *new;

	if (!is_possible(tx) || (rx && !is_possible(rx)))
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->netdev.ops = &fault_ops;
	new->below = below;
	new->clean_rx = !rx;
	set_line(&new->tx, tx);
	if (rx)
		set_line(&new->rx, rx);
	*port = &new->netdev;
	return 0;
}

void netdev_fault_counters(const struct netdev *netdev, struct netdev_fault_counters *tx,
			   struct netdev_fault_counters *rx)
{
	const struct fault_port *port = (const struct fault_port *)netdev;

	*tx = port->tx.counters;
	*rx = port->rx.counters;
}
