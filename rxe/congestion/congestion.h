/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a congestion control algorithm is to the rest of the engine. */
#ifndef URXE_CONG_H
#define URXE_CONG_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* State of DCQCN (congestion/dcqcn.h). */
struct dcqcn {
	uint64_t current_bps; /* R_C; 0: at the link's rate, nothing to limit */
	uint64_t target_bps;  /* R_T */
	uint64_t alpha_at;    /* alpha decays next */
	uint64_t increase_at; /* T counts next */
	uint32_t alpha;       /* estimate of the congestion, in 1 / DCQCN_ALPHA_ONE */
	uint32_t bytes;       /* sent since BC counted last */
	uint32_t by_time;     /* T: increases by time since the last CNP */
	uint32_t by_size;     /* BC: increases by bytes sent since then */
};

/* An algorithm's state, one for each QP. */
struct cong {
	struct dcqcn dcqcn;
};

struct cong_config;

struct cong_ops {
	uint8_t ecn; /* ECN field of what is sent (RFC 3168, 5) */
	/* A connection begins. */
	void (*init)(struct cong *cong);
	/* A CNP came; whether it changes the rate. */
	bool (*notified)(const struct cong_config *config, struct cong *cong, uint64_t now);
	/* A packet of `len` bytes goes out. Returns the rate that holds now, bits/s; 0 = no limit.
	 */
	uint64_t (*sent)(const struct cong_config *config, struct cong *cong, uint64_t now,
			 uint32_t len);
};

/* A device's choice. */
struct cong_config {
	const struct cong_ops *ops;
	struct urxe_dcqcn dcqcn;
	uint64_t link_bps;
};

#endif
