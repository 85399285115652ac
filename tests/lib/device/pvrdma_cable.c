/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* struct net: the cable between the devices of two guests, and their time. */
#include "pvrdma_driver.h"

#include "require.h"

#define BURST      32
#define FRAME_ROOM 9216

static void deliver(struct net *net, unsigned from, const struct urxe_frame *frame)
{
	struct guest *to = net->guest[!from];
	struct urxe_frame arriving = *frame;

	arriving.without_icrc = frame->reference.length;
	arriving.reference.sender = net->guest[from];
	arriving.reference.pieces = frame->data + frame->len - URXE_ICRC_LEN;
	if (net->lose >> (net->moved++ % 64) & 1 || !to)
		return;
	if (pvrdma_wants(to->dev, frame->data, frame->len))
		pvrdma_input(to->dev, to->now, &arriving, 1);
}

static uint32_t move_frames(struct net *net, unsigned from)
{
	static uint8_t bytes[BURST][FRAME_ROOM];
	struct urxe_frame frames[BURST];
	struct guest *g = net->guest[from];
	uint32_t n;

	for (unsigned i = 0; i < BURST; i++)
		frames[i] = (struct urxe_frame){.data = bytes[i], .room = FRAME_ROOM};
	n = pvrdma_output(g->dev, g->now, frames, BURST);
	for (uint32_t i = 0; i < n; i++)
		deliver(net, from, &frames[i]);
	pvrdma_flush(g->dev);
	return n;
}

static unsigned guests_of(const struct net *net)
{
	return net->guest[1] ? 2 : 1;
}

bool net_step(struct net *net)
{
	bool some = false;

	for (unsigned i = 0; i < guests_of(net); i++) {
		struct guest *g = net->guest[i];

		some |= move_frames(net, i) > 0 || pvrdma_next_deadline(g->dev) <= g->now;
	}
	return some;
}

static uint64_t next_deadline(const struct net *net)
{
	uint64_t deadline = URXE_NEVER;

	for (unsigned i = 0; i < guests_of(net); i++) {
		uint64_t next = pvrdma_next_deadline(net->guest[i]->dev);

		if (next < deadline)
			deadline = next;
	}
	return deadline;
}

void net_run_for(struct net *net, uint64_t ns)
{
	const uint64_t end = net->guest[0]->now + ns;
	uint64_t next;
	unsigned steps = 0;

	for (;;) {
		while (net_step(net))
			require(++steps < 1000000);
		next = next_deadline(net);
		if (next == URXE_NEVER || next > end)
			return;
		for (unsigned i = 0; i < guests_of(net); i++)
			net->guest[i]->now = next;
	}
}

void net_run(struct net *net)
{
	net_run_for(net, UINT64_C(60000000000));
}
