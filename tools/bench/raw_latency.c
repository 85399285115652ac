/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/raw_latency.h"

#include <string.h>

#include <netdev/netdev.h>

#include "bench/endpoint.h"
#include "common/clock.h"

#define BURST 32

/*
 * A frame: addresses, EtherType, mark, what it is, number, zeros. The EtherType is RoCEv1's: some
 * ports let nothing else in. The mark stands where a GRH has its IP version, and has another one
 * than 6, so that engines drop the frame.
 */
#define SOURCE 6
#define TYPE   12
#define WHAT   22
#define NUMBER 24

enum what { QUESTION = 1, ANSWER };

static const uint8_t mark[WHAT - TYPE] = {0x89, 0x15, 'u', 'r', 'x', 'e', 'b', 'a', 'r', 'e'};

void raw_latency_init(struct raw_latency *b, struct netdev *port)
{
	*b = (struct raw_latency){.port = port, .heard = now_ns()};
	endpoint_mac(port, b->mac);
	memset(b->peer, 0xff, sizeof(b->peer));
}

static void transmit(struct raw_latency *b, uint64_t now, const uint8_t to[6], enum what what,
		     const uint8_t number[4])
{
	uint8_t bytes[RAW_LATENCY_LEN] = {0};
	const struct netdev_frame frame = {.data = bytes, .len = sizeof(bytes)};

	memcpy(bytes, to, 6);
	memcpy(bytes + SOURCE, b->mac, 6);
	memcpy(bytes + TYPE, mark, sizeof(mark));
	bytes[WHAT] = (uint8_t)what;
	memcpy(bytes + NUMBER, number, 4);
	netdev_tx(b->port, now, &frame, 1); /* what is not taken is asked for again */
}

static bool is(const struct netdev_frame *frame, enum what what)
{
	return frame->len >= RAW_LATENCY_LEN && !memcmp(frame->data + TYPE, mark, sizeof(mark)) &&
	       frame->data[WHAT] == what;
}

void raw_latency_ask(struct raw_latency *b, uint64_t now, bool again)
{
	uint8_t number[4];

	b->number += !again;
	memcpy(number, &b->number, sizeof(number));
	transmit(b, now, b->peer, QUESTION, number);
}

bool raw_latency_answered(struct raw_latency *b, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(b->port, now, frames, BURST);
	bool answered = false;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;

		/* A bridge may bring another one's answer, too. */
		if (!is(&frames[i], ANSWER) || memcmp(data, b->mac, sizeof(b->mac)) ||
		    memcmp(data + NUMBER, &b->number, sizeof(b->number)))
			continue;
		memcpy(b->peer, data + SOURCE, sizeof(b->peer));
		answered = true;
	}
	return answered;
}

void raw_latency_answer(struct raw_latency *b, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(b->port, now, frames, BURST);

	for (uint32_t i = 0; i < n; i++) {
		if (!is(&frames[i], QUESTION))
			continue;
		b->heard = now;
		transmit(b, now, frames[i].data + SOURCE, ANSWER, frames[i].data + NUMBER);
	}
}
