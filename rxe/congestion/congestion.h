/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The interface of a congestion control algorithm; congestion/pacing.c calls it. */
#ifndef URXE_CONG_H
#define URXE_CONG_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* State of DCQCN (congestion/dcqcn.h). */
struct dcqcn {
	uint64_t current_bps; /* R_C; 0: the link's rate, no limit */
	uint64_t target_bps;  /* R_T */
	uint64_t alpha_at;    /* time of the next decay of alpha, ns */
	uint64_t increase_at; /* time of the next increase by T, ns */
	uint64_t raise_at;    /* time from which a CNP raises alpha, ns */
	uint32_t alpha;       /* estimate of the congestion, in 1 / DCQCN_ALPHA_ONE */
	uint32_t bytes;       /* sent since the last increase by BC */
	uint32_t by_time;     /* T: increases by time since the last CNP */
	uint32_t by_size;     /* BC: increases by bytes sent since then */
	uint32_t len;         /* of the last packet, bytes */
};

/* An algorithm's state, one for each QP. */
struct cong {
	struct dcqcn dcqcn;
};

struct cong_config;

struct cong_ops {
	uint8_t ecn; /* ECN field of sent packets (RFC 3168, 5) */
	/* A QP is created or reset: sets the state to its initial values. */
	void (*init)(struct cong *cong);
	/* A CNP arrived; true if the rate changes. rtt: smoothed round trip, ns; 0 = unknown. */
	bool (*notified)(const struct cong_config *config, struct cong *cong, uint64_t now,
			 uint64_t rtt);
	/* A packet of `len` bytes is sent. Returns the current rate, bits/s; 0 = no limit. */
	uint64_t (*sent)(const struct cong_config *config, struct cong *cong, uint64_t now,
			 uint64_t rtt, uint32_t len);
};

/* The algorithm of a device, and its parameters. */
struct cong_config {
	const struct cong_ops *ops;
	struct urxe_dcqcn dcqcn;
	uint64_t link_bps;
};

#endif
