/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DCQCN's reaction point: the rate of one QP (Zhu et al., SIGCOMM 2015, section 3.1).
 * congestion/pacing.c calls it; device/device.c calls dcqcn_configure.
 */
#ifndef URXE_CONGESTION_DCQCN_H
#define URXE_CONGESTION_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/cong.h>
#include <rxe/rxe.h>

/* alpha is a fraction of this. */
#define DCQCN_ALPHA_SHIFT 20
#define DCQCN_ALPHA_ONE   (1u << DCQCN_ALPHA_SHIFT)

/* The parameters of a device. */
struct dcqcn_config {
	bool enabled; /* false: URXE_CONGESTION_NONE */
	struct urxe_dcqcn params;
	uint64_t link_bps;
};

/* The state of one QP. */
struct dcqcn {
	uint64_t current_bps; /* R_C; 0: the link's rate, no limit */
	uint64_t target_bps;  /* R_T */
	uint64_t alpha_at;    /* time of the next decay of alpha, ns */
	uint64_t increase_at; /* time of the next increase by T, ns */
	uint64_t raise_at;    /* time from which a CNP raises alpha, ns */
	uint64_t cut_at;      /* time from which a CNP lowers the rate, ns */
	uint32_t alpha;       /* estimate of the congestion, in 1 / DCQCN_ALPHA_ONE */
	uint32_t bytes;       /* sent since the last increase by BC or the last CNP */
	uint32_t by_time;     /* T: increases by time since the last CNP */
	uint32_t by_size;     /* BC: increases by bytes sent since then */
	uint32_t len;         /* of the last packet, bytes */
};

/*
 * Fills in the configuration from the device's attributes. Without attr->dcqcn the parameters are
 * urxe_dcqcn_default; without attr->link_bps the link's rate is 100 Gb/s. -EINVAL: an attribute is
 * out of its range, and *config is undefined.
 */
int dcqcn_configure(struct dcqcn_config *config, const struct urxe_dev_attr *attr);
/* A QP is created or reset: sets the state to its initial values. */
void dcqcn_init(struct dcqcn *d);
/*
 * A CNP arrived: lowers the rate, and returns true; or returns false, because another CNP has
 * lowered it less than 25 us ago. In both cases the increase of the rate starts anew, and alpha may
 * rise. rtt: smoothed round trip, ns; 0 = unknown.
 */
bool dcqcn_notified(const struct dcqcn_config *config, struct dcqcn *d, uint64_t now, uint64_t rtt);
/* The QP sends a packet of `len` bytes. Returns the current rate, bits/s; 0 = no limit. */
uint64_t dcqcn_sent(const struct dcqcn_config *config, struct dcqcn *d, uint64_t now, uint64_t rtt,
		    uint32_t len);

#endif
