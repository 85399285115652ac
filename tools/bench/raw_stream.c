/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/raw_stream.h"

#include <errno.h>
#include <string.h>

#include <netdev/netdev.h>

#include "bench/raw_frame.h"
#include "common/clock.h"

#define BURST   32
#define LOST_NS (100 * NS_PER_MS)
/* Ethernet header, IPv4, UDP, BTH and RETH, and ICRC of a packet of a WRITE. */
#define OVERHEAD (14 + 20 + 8 + 12 + 16 + 4)

/* The largest path MTU, in bytes, whose packets fit the port's MTU; 0: none fits. */
static uint32_t payload_for(uint32_t mtu)
{
	for (uint32_t payload = 4096; payload >= 256; payload /= 2)
		if (payload + OVERHEAD - 14 <= mtu)
			return payload;
	return 0;
}

int raw_stream_init(struct raw_stream *stream, struct netdev *port, const uint8_t mac[6],
		    const uint8_t peer[6])
{
	*stream = (struct raw_stream){.port = port, .payload = payload_for(netdev_mtu(port))};
	memcpy(stream->mac, mac, 6);
	memcpy(stream->peer, peer, 6);
	return stream->payload ? 0 : -EINVAL;
}

static void take_credits(struct raw_stream *stream, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_rx(stream->port, now, frames, BURST);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number;

		if (!raw_frame_is(&frames[i], RAW_CREDIT, stream->mac))
			continue;
		number = raw_frame_number(&frames[i]);
		/* Ignores a credit that comes after its frame was counted as lost. */
		if (number - stream->credited - 1 >= stream->sent - stream->credited)
			continue;
		stream->delivered += RAW_STREAM_CREDIT;
		stream->credited = number;
		stream->heard_at = now;
	}
}

static uint32_t send_raw_burst(struct raw_stream *stream, uint64_t now, uint32_t n)
{
	static uint8_t bytes[BURST][RAW_STREAM_FRAME_MAX];
	struct netdev_frame frames[BURST];

	for (uint32_t i = 0; i < n; i++) {
		raw_frame_write(bytes[i], stream->peer, stream->mac, RAW_PAYLOAD,
				stream->sent + 1 + i);
		frames[i] =
			(struct netdev_frame){.data = bytes[i], .len = stream->payload + OVERHEAD};
	}
	return netdev_tx(stream->port, now, frames, n);
}

void raw_stream_turn(struct raw_stream *stream, uint64_t now)
{
	uint32_t room;

	if (now - stream->heard_at > LOST_NS) {
		stream->credited = stream->sent;
		stream->heard_at = now;
	}
	room = RAW_STREAM_WINDOW - (stream->sent - stream->credited);
	if (room >= RAW_STREAM_CREDIT)
		stream->sent += send_raw_burst(stream, now, room < BURST ? room : BURST);
	take_credits(stream, now);
}

bool raw_sink_take(struct raw_sink *sink, struct netdev *port, const uint8_t mac[6], uint64_t now,
		   const struct netdev_frame *frame)
{
	uint8_t bytes[RAW_FRAME_LEN];
	const struct netdev_frame credit = {.data = bytes, .len = sizeof(bytes)};

	if (!raw_frame_is(frame, RAW_PAYLOAD, mac))
		return false;
	if (++sink->received < RAW_STREAM_CREDIT)
		return true;
	sink->received = 0;
	raw_frame_write(bytes, raw_frame_source(frame), mac, RAW_CREDIT, raw_frame_number(frame));
	netdev_tx(port, now, &credit, 1);
	return true;
}
