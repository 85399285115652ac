/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Round trips of frames without an engine (urxe bench --bare): the share of port and cable in the
 * latency of a SEND. One end sends questions, the first by broadcast and later ones to the peer
 * that answered, and the other end answers. Each frame is as long as that of a SEND of 2 bytes.
 */
#ifndef URXE_BENCH_RAW_LATENCY_H
#define URXE_BENCH_RAW_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/raw_stream.h"

struct netdev;

struct raw_latency {
	struct netdev *port;
	uint8_t mac[6], peer[6];
	uint32_t number;      /* of the question */
	uint64_t last_rx;     /* time of the last question or payload frame, by now_ns() */
	struct raw_sink sink; /* of the answering end, for payload frames (raw_stream.h) */
};

/* The port must stay open as long as *bare is in use; the caller closes it. */
void raw_latency_init(struct raw_latency *bare, struct netdev *port);

/* Sends a question at time `now` of now_ns(); `again` repeats the last one, which may be lost. */
void raw_latency_ask(struct raw_latency *bare, uint64_t now, bool again);
/* Polls the port once. True: the question has been answered. */
bool raw_latency_answered(struct raw_latency *bare, uint64_t now);
/* Polls the port once, and answers the received questions and payload frames. */
void raw_latency_answer(struct raw_latency *bare, uint64_t now);

#endif
