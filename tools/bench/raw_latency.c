/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/raw_latency.h"

#include <string.h>

#include <netdev/netdev.h>

#include "bench/endpoint.h"
#include "common/clock.h"

#define BURST 32

/*
 * A frame: addresses, EtherType, mark, type, number, zeros. The EtherType is that of RoCEv1,
 * because some ports receive no other one. The mark lies where a GRH has its IP version, which is
 * not 6 there, so that engines drop the frame.
 */
#define SOURCE 6
#define TYPE   12
#define KIND   22
#define NUMBER 24

enum message_type { QUESTION = 1, ANSWER };

static const uint8_t mark[KIND - TYPE] = {0x89, 0x15, 'u', 'r', 'x', 'e', 'b', 'a', 'r', 'e'};

void raw_latency_init(struct raw_latency *b, struct netdev *port)
{
	*b = (struct raw_latency){.port = port, .last_rx = now_ns()};
	endpoint_mac(port, b->mac);
	memset(b->peer, 0xff, sizeof(b->peer));
}

static void send_message(struct raw_latency *b, uint64_t now, const uint8_t to[6],
			 enum message_type type, const uint8_t number[4])
{
	uint8_t bytes[RAW_LATENCY_LEN] = {0};
	const struct netdev_frame frame = {.data = bytes, .len = sizeof(bytes)};

	memcpy(bytes, to, 6);
	memcpy(bytes + SOURCE, b->mac, 6);
	memcpy(bytes + TYPE, mark, sizeof(mark));
	bytes[KIND] = (uint8_t)type;
	memcpy(bytes + NUMBER, number, 4);
	netdev_tx(b->port, now, &frame, 1); /* a frame that the port does not take counts as lost */
}

static bool is_message(const struct netdev_frame *frame, enum message_type type)
{
	return frame->len >= RAW_LATENCY_LEN && !memcmp(frame->data + TYPE, mark, sizeof(mark)) &&
	       frame->data[KIND] == type;
}

void raw_latency_ask(struct raw_latency *b, uint64_t now, bool again)
{
	uint8_t number[4];

	b->number += !again;
	memcpy(number, &b->number, sizeof(number));
	send_message(b, now, b->peer, QUESTION, number);
}

bool raw_latency_answered(struct raw_latency *b, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(b->port, now, frames, BURST);
	bool answered = false;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;

		/* A bridge may also deliver another station's answer. */
		if (!is_message(&frames[i], ANSWER) || memcmp(data, b->mac, sizeof(b->mac)) ||
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
		if (!is_message(&frames[i], QUESTION))
			continue;
		b->last_rx = now;
		send_message(b, now, frames[i].data + SOURCE, ANSWER, frames[i].data + NUMBER);
	}
}
