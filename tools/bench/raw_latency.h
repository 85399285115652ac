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

struct netdev;

/* Ethernet header, GRH, BTH, payload with its pad, and ICRC. */
#define RAW_LATENCY_LEN (14 + 40 + 12 + 4 + 4)

struct raw_latency {
	struct netdev *port;
	uint8_t mac[6], peer[6];
	uint32_t number;  /* of the question */
	uint64_t last_rx; /* time of the last question, by now_ns() */
};

/* The caller closes the port. */
void raw_latency_init(struct raw_latency *bare, struct netdev *port);

/* Sends a question at time `now` of now_ns(); `again` repeats the last one, which may be lost. */
void raw_latency_ask(struct raw_latency *bare, uint64_t now, bool again);
/* Polls the port once. True: the question has been answered. */
bool raw_latency_answered(struct raw_latency *bare, uint64_t now);
/* Polls the port once, and answers the received questions. */
void raw_latency_answer(struct raw_latency *bare, uint64_t now);

#endif
