/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a congestion control algorithm is to the rest of the engine. */
#ifndef URXE_CONG_H
#define URXE_CONG_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

#include "congestion/dcqcn.h"

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

extern const struct cong_ops cong_none;
extern const struct cong_ops cong_dcqcn;

/* -EINVAL where an attribute is out of its range. */
int cong_configure(struct cong_config *config, const struct urxe_dev_attr *attr);

#endif
