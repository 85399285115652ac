/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/raw_latency.h"

#include <string.h>

#include <netdev/netdev.h>

#include "bench/endpoint.h"
#include "bench/raw_frame.h"
#include "common/clock.h"

#define BURST 32

void raw_latency_init(struct raw_latency *b, struct netdev *port)
{
	*b = (struct raw_latency){.port = port, .last_rx = now_ns()};
	endpoint_mac(port, b->mac);
	memset(b->peer, 0xff, sizeof(b->peer));
}

static void send_message(struct raw_latency *b, uint64_t now, const uint8_t to[6],
			 enum raw_frame_type type, uint32_t number)
{
	uint8_t bytes[RAW_FRAME_LEN];
	const struct netdev_frame frame = {.data = bytes, .len = sizeof(bytes)};

	raw_frame_write(bytes, to, b->mac, type, number);
	netdev_tx(b->port, now, &frame, 1); /* a frame that the port does not take counts as lost */
}

void raw_latency_ask(struct raw_latency *b, uint64_t now, bool again)
{
	b->number += !again;
	send_message(b, now, b->peer, RAW_QUESTION, b->number);
}

bool raw_latency_answered(struct raw_latency *b, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(b->port, now, frames, BURST);
	bool answered = false;

	for (uint32_t i = 0; i < n; i++) {
		/* A bridge may also deliver another station's answer. */
		if (!raw_frame_is(&frames[i], RAW_ANSWER, b->mac) ||
		    raw_frame_number(&frames[i]) != b->number)
			continue;
		memcpy(b->peer, raw_frame_source(&frames[i]), sizeof(b->peer));
		answered = true;
	}
	return answered;
}

void raw_latency_answer(struct raw_latency *b, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(b->port, now, frames, BURST);

	for (uint32_t i = 0; i < n; i++) {
		if (raw_frame_is(&frames[i], RAW_QUESTION, NULL))
			send_message(b, now, raw_frame_source(&frames[i]), RAW_ANSWER,
				     raw_frame_number(&frames[i]));
		else if (!raw_sink_take(&b->sink, b->port, b->mac, now, &frames[i]))
			continue;
		b->last_rx = now;
	}
}
