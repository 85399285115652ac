/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Round-trip time of a connection, smoothed as in TCP (RFC 6298), ns. One packet at a time is
 * timed, and no packet that was sent twice (Karn).
 */
#ifndef URXE_CONGESTION_RTT_H
#define URXE_CONGESTION_RTT_H

#include <stdbool.h>
#include <stdint.h>

struct rtt {
	uint64_t smoothed; /* 0 = nothing measured yet */
	uint64_t deviation;
	uint64_t least; /* smallest sample; 0 = none, or no longer trusted */
	uint64_t sent;
	uint32_t psn; /* of the packet being timed */
	bool timing;
};

static inline void rtt_start(struct rtt *rtt, uint32_t psn, uint64_t now)
{
	if (rtt->timing)
		return;
	rtt->sent = now;
	rtt->psn = psn;
	rtt->timing = true;
}

static inline void rtt_cancel(struct rtt *rtt)
{
	rtt->timing = false;
}

/* The packet being timed was acknowledged: adds the sample. */
static inline void rtt_stop(struct rtt *rtt, uint64_t now)
{
	uint64_t sample = now - rtt->sent, error;

	rtt->timing = false;
	if (!rtt->least || sample < rtt->least)
		rtt->least = sample;
	if (!rtt->smoothed) {
		rtt->smoothed = sample + !sample;
		rtt->deviation = sample / 2;
		return;
	}
	error = sample > rtt->smoothed ? sample - rtt->smoothed : rtt->smoothed - sample;
	rtt->deviation += error / 4 - rtt->deviation / 4;
	rtt->smoothed += sample / 8 - rtt->smoothed / 8;
}

#endif
