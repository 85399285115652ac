/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port that impairs the frames of the port below, for `urxed --fault` and tests. Each frame is
 * copied into a queue, one per direction, ordered by due time. Each call passes on the frames that
 * are due at its `now`. The same seed and calls give the same impairments.
 */
#include <errno.h>
#include <stdlib.h>

#include "frame_buffer.h"
#include "netdev_ops.h"
#include "prng.h"

/* Most frames in a queue: 64 connections may have windows of 64 packets each. */
#define HELD_MAX 4096

#define BURST 32

/* Most bursts that one netdev_rx receives, if all frames of each are lost or delayed. */
#define ROUNDS 32
/* Time from a refusal of the port below to the next attempt. */
#define RETRY_NS 50000

struct held {
	uint64_t due;
	uint64_t seq; /* order of sending, for frames due at the same time */
	struct frame_buffer buf;
};

/* The queue of one direction. */
struct line {
	struct netdev_impairment impairment;
	struct netdev_impair_counters counters;
	struct prng prng;
	uint64_t seq;
	/* The first `count` are a heap by due time; the others keep buffers for reuse. */
	struct held *held;
	uint32_t count, allocated;
};

struct impair_port {
	struct netdev netdev;
	bool clean_rx; /* received frames are not impaired */
	struct line tx, rx;
	uint64_t retry_at; /* when to send again what the port below has refused */
};

static struct impair_port *to_impair(struct netdev *port)
{
	return (struct impair_port *)port;
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

/* Moves the first frame down to its place. */
static void heap_down(struct held *heap, uint32_t count)
{
	for (uint32_t i = 0;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < count && held_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || held_before(&heap[i], &heap[child]))
			return;
		held_swap(&heap[i], &heap[child]);
		i = child;
	}
}

static bool is_first_due(const struct line *line, uint64_t now)
{
	return line->count && line->held[0].due <= now;
}

/* Takes the frame that is due first out of the queue. Its memory is valid until the next
 * hold_frame(). */
static struct netdev_frame take_first_held(struct line *line)
{
	held_swap(&line->held[0], &line->held[--line->count]);
	heap_down(line->held, line->count);
	line->counters.passed++;
	return frame_buffer_view(&line->held[line->count].buf);
}

static bool reserve_held(struct line *line, uint32_t n)
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

/* Puts a copy of the frame into the queue, or drops the frame for want of memory. The copy's time
 * is its due time. */
static void hold_frame(struct line *line, const struct netdev_frame *frame, uint64_t due,
		       bool corrupt)
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

/*
 * Draws five random numbers for each frame, so that a change of the probability of duplicates or of
 * reordering does not change which frames the other impairments select. A change of the probability
 * of drops or of corruption may do so: flip_bit draws one more number for each corrupted frame that
 * is not dropped.
 */
static void impair_frame(struct line *line, uint64_t now, const struct netdev_frame *frame)
{
	const struct netdev_impairment *impairment = &line->impairment;
	bool drop = prng_chance(&line->prng, impairment->drop);
	bool duplicate = prng_chance(&line->prng, impairment->duplicate);
	bool reorder = prng_chance(&line->prng, impairment->reorder);
	bool corrupt = prng_chance(&line->prng, impairment->corrupt);
	uint64_t lag = 1 + prng_below(&line->prng, impairment->reorder_ns);
	uint64_t due = now + impairment->delay_ns;

	if (drop) {
		line->counters.dropped++;
		return;
	}
	hold_frame(line, frame, reorder ? due + lag : due, corrupt);
	line->counters.reordered += reorder;
	if (duplicate) {
		hold_frame(line, frame, due, false);
		line->counters.duplicated++;
	}
}

/* Sends the frames that are due. A frame that the port below refuses stays first in the queue. */
static void release_due(struct impair_port *port, uint64_t now)
{
	while (is_first_due(&port->tx, now)) {
		struct netdev_frame frame = frame_buffer_view(&port->tx.held[0].buf);

		if (!netdev_tx(port->netdev.below, now, &frame, 1)) {
			port->retry_at = now + RETRY_NS;
			return;
		}
		take_first_held(&port->tx);
	}
}

static uint32_t impair_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			  uint32_t n)
{
	struct impair_port *port = to_impair(netdev);
	uint32_t i;

	release_due(port, now);
	for (i = 0; i < n && reserve_held(&port->tx, 2); i++)
		impair_frame(&port->tx, now, &frames[i]);
	release_due(port, now);
	return i;
}

/* Receives further bursts while no received frame is due, because all are lost or delayed: an empty
 * netdev_rx must mean that the port below is empty. */
static void receive_bursts(struct impair_port *port, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t i, n, rounds = 0;

	do {
		if (rounds++ == ROUNDS || !reserve_held(&port->rx, 2 * BURST))
			break;
		n = netdev_rx(port->netdev.below, now, frames, BURST);
		for (i = 0; i < n; i++)
			impair_frame(&port->rx, now, &frames[i]);
	} while (n && !is_first_due(&port->rx, now));
}

static uint32_t impair_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			  uint32_t n)
{
	struct impair_port *port = to_impair(netdev);
	uint32_t i;

	release_due(port, now);
	if (port->clean_rx)
		return netdev_rx(port->netdev.below, now, frames, n);
	if (n)
		receive_bursts(port, now);
	for (i = 0; i < n && is_first_due(&port->rx, now); i++)
		frames[i] = take_first_held(&port->rx);
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

static uint64_t tx_due(const struct impair_port *port)
{
	const uint64_t due = first_due(&port->tx);

	return due < port->retry_at ? port->retry_at : due;
}

static uint64_t impair_next_deadline(struct netdev *netdev)
{
	struct impair_port *port = to_impair(netdev);

	return earlier(netdev_next_deadline(port->netdev.below),
		       earlier(tx_due(port), first_due(&port->rx)));
}

static void free_line(struct line *line)
{
	uint32_t i;

	for (i = 0; i < line->allocated; i++)
		free(line->held[i].buf.data);
	free(line->held);
}

static void impair_close(struct netdev *netdev)
{
	struct impair_port *port = to_impair(netdev);

	netdev_close(port->netdev.below);
	free_line(&port->tx);
	free_line(&port->rx);
	free(port);
}

static const struct netdev_ops impair_ops = {
	.rx = impair_rx,
	.tx = impair_tx,
	.next_deadline = impair_next_deadline,
	.close = impair_close,
};

/* Whether p lies in [0, 1]; false for NaN. */
static bool is_probability(double p)
{
	return p >= 0 && p <= 1;
}

static bool is_valid(const struct netdev_impairment *impairment)
{
	return is_probability(impairment->drop) && is_probability(impairment->duplicate) &&
	       is_probability(impairment->reorder) && is_probability(impairment->corrupt) &&
	       impairment->delay_ns <= NETDEV_IMPAIR_NS_MAX &&
	       impairment->reorder_ns <= NETDEV_IMPAIR_NS_MAX &&
	       !(impairment->reorder > 0 && !impairment->reorder_ns);
}

static void set_line(struct line *line, const struct netdev_impairment *impairment)
{
	line->impairment = *impairment;
	prng_seed(&line->prng, impairment->seed);
}

int netdev_impair_open(struct netdev *below, const struct netdev_impairment *tx,
		       const struct netdev_impairment *rx, struct netdev **port)
{
	struct impair_port *new;

	if (!is_valid(tx) || (rx && !is_valid(rx)))
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->netdev.ops = &impair_ops;
	new->netdev.below = below;
	new->clean_rx = !rx;
	set_line(&new->tx, tx);
	if (rx)
		set_line(&new->rx, rx);
	*port = &new->netdev;
	return 0;
}

void netdev_impair_counters(const struct netdev *netdev, struct netdev_impair_counters *tx,
			    struct netdev_impair_counters *rx)
{
	const struct impair_port *port = (const struct impair_port *)netdev;

	*tx = port->tx.counters;
	*rx = port->rx.counters;
}
