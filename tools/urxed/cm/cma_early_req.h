/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that come early. A server that serves one connection after the other, as perftest's do
 * with -R, has no listener between two; its client may be quicker, and takes a rejection for the
 * end. So a request for a port that somebody has listened to just before is kept for a moment, for
 * the next listener, before it is refused. A peer waits for seconds (CM response timeout). The two
 * listeners may be in different port spaces: perftest's first one always is in RDMA_PS_TCP, the
 * second one with -c UD in RDMA_PS_UDP.
 */
#ifndef URXE_URXED_CM_CMA_EARLY_REQ_H
#define URXE_URXED_CM_CMA_EARLY_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include <cm/cm.h>

#define CMA_EARLY_GONE_NS 1000000000ull /* a listener that went longer ago is not awaited */
#define CMA_EARLY_KEPT_NS 200000000ull
#define CMA_EARLY_MAX     64 /* requests kept, and ports remembered: the last ones */

struct cma_early_req {
	uint64_t service_id;
	uint64_t due; /* until when it is kept */
	struct cm_path path;
	uint8_t mad[CM_MAD_LEN];
};

struct cma_early_reqs {
	struct {
		uint16_t port;
		uint64_t at; /* when its listener went */
	} gone[CMA_EARLY_MAX];
	uint32_t n_gone; /* ever */
	struct cma_early_req kept[CMA_EARLY_MAX];
	uint32_t n_kept;
};

/* A listener has gone, of whatever port space. */
void cma_early_req_listener_gone(struct cma_early_reqs *early, uint64_t now, uint16_t port);
/* Keeps a request to which nobody listens. False: it is not early, or too many are kept. */
bool cma_early_req_hold(struct cma_early_reqs *early, uint64_t now, uint64_t service_id,
			const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
/* The oldest one that has been kept for long enough, or whose port is heard; false: there is none.
 */
bool cma_early_req_take(struct cma_early_reqs *early, uint64_t now,
			bool (*heard)(const void *ctx, uint64_t service_id), const void *ctx,
			struct cma_early_req *request);
/* When the next one has been kept for long enough; UINT64_MAX: there is none. */
uint64_t cma_early_req_due(const struct cma_early_reqs *early);

#endif
