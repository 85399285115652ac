/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of frames without an engine (urxe bench --bare): the share of port and cable in the
 * bandwidth of WRITEs. One end sends payload frames, as long as a packet of the port's path MTU,
 * and the other end returns a credit for each RAW_STREAM_CREDIT of them, as a responder
 * acknowledges a WRITE. At most RAW_STREAM_WINDOW frames that were sent have no credit yet.
 */
#ifndef URXE_BENCH_RAW_STREAM_H
#define URXE_BENCH_RAW_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;
struct netdev_frame;

#define RAW_STREAM_CREDIT 16u
#define RAW_STREAM_WINDOW 256u
/* A payload frame has at most so many bytes. */
#define RAW_STREAM_FRAME_MAX 4200u

/* The sending end. */
struct raw_stream {
	struct netdev *port;
	uint8_t mac[6], peer[6];
	uint32_t payload;   /* bytes of a frame that are a packet's payload */
	uint32_t sent;      /* frames, modulo 2^32 */
	uint32_t credited;  /* number of the last frame that has a credit or counts as lost */
	uint64_t delivered; /* frames that arrived, by the credits */
	uint64_t heard_at;  /* time of the last credit or loss, by now_ns() */
};

/* The receiving end. */
struct raw_sink {
	uint32_t received; /* frames since the last credit */
};

/* Prepares the stream. `peer`: the MAC of the other end. -EINVAL: the port's MTU is too small for a
 * RoCE packet. */
int raw_stream_init(struct raw_stream *stream, struct netdev *port, const uint8_t mac[6],
		    const uint8_t peer[6]);
/*
 * Sends a burst of frames if the window has room for RAW_STREAM_CREDIT, and polls the port once for
 * credits, at time `now` of now_ns(). If no credit came for 100 ms, all frames without one count as
 * lost.
 */
void raw_stream_turn(struct raw_stream *stream, uint64_t now);

/*
 * Is a received frame a payload frame to this end's MAC? If so, counts it, and sends a credit if
 * one is due.
 */
bool raw_sink_take(struct raw_sink *sink, struct netdev *port, const uint8_t mac[6], uint64_t now,
		   const struct netdev_frame *frame);

#endif
