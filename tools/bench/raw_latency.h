/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames without an engine: what port and cable take of the latency of a SEND. One end asks, at
 * first everyone and then who has answered, and the other one answers; each frame is as long as
 * that of a SEND of 2 bytes.
 */
#ifndef URXE_BENCH_RAW_LATENCY_H
#define URXE_BENCH_RAW_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;

/* Ethernet header, GRH, BTH, payload with its pad, and ICRC. */
#define RAW_LATENCY_LEN (14 + 40 + 12 + 4 + 4)

struct raw_latency {
	struct netdev *port;
	uint8_t mac[6], peer[6];
	uint32_t number; /* of the question */
	uint64_t heard;  /* when the last question came, now_ns() */
};

/* The port stays the caller's. */
void raw_latency_init(struct raw_latency *bare, struct netdev *port);

/* `now` is now_ns(). Asks a question; again = the last one once more, which may have been lost. */
void raw_latency_ask(struct raw_latency *bare, uint64_t now, bool again);
/* Looks at the port once: whether that question has been answered. */
bool raw_latency_answered(struct raw_latency *bare, uint64_t now);
/* Looks at the port once, and answers what asks. */
void raw_latency_answer(struct raw_latency *bare, uint64_t now);

#endif
