/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps a REQ or SIDR_REQ that arrives between two listeners of one server for CMA_EARLY_KEPT_NS.
 *
 * A server that serves one connection after the other, as perftest does with -R, destroys its
 * listener before it creates the next one. A client that connects in between would give up if it
 * were rejected, but it waits for seconds for an answer (CM response timeout). The port spaces of
 * the two listeners may differ: perftest's first listener is in RDMA_PS_TCP, the second one with -c
 * UD in RDMA_PS_UDP. cma.c calls this.
 */
#ifndef URXE_URXED_CM_CMA_EARLY_REQ_H
#define URXE_URXED_CM_CMA_EARLY_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include <cm/cm.h>

/* A request is kept only if a listener at its port was closed at most this long before the request
 * arrived. */
#define CMA_EARLY_GONE_NS 1000000000ull
#define CMA_EARLY_KEPT_NS 200000000ull
/* Limit of kept requests, and of remembered ports of closed listeners. */
#define CMA_EARLY_MAX 64

struct cma_early_req {
	uint64_t service_id;
	uint64_t due; /* time at which the request expires, and is rejected, ns */
	struct cm_path path;
	uint8_t mad[CM_MAD_LEN];
};

struct cma_early_reqs {
	struct {
		uint16_t port;
		uint64_t at; /* time at which the listener was closed, ns */
	} gone[CMA_EARLY_MAX];
	uint32_t n_gone; /* closed listeners so far; modulo CMA_EARLY_MAX the next index */
	struct cma_early_req kept[CMA_EARLY_MAX];
	uint32_t n_kept;
};

/* Notes that a listener at that port was closed, whatever its port space. */
void cma_early_req_listener_gone(struct cma_early_reqs *early, uint64_t now, uint16_t port);
/*
 * Keeps a request that has no listener. Returns false if no listener at its port was closed within
 * CMA_EARLY_GONE_NS, or if CMA_EARLY_MAX requests are kept. In the second case a request whose
 * sender's MAC was confirmed by address resolution displaces one of an unconfirmed sender.
 */
bool cma_early_req_keep(struct cma_early_reqs *early, uint64_t now, uint64_t service_id,
			const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
/* Moves the oldest kept request that has expired, or that has a listener by now, to *request.
 * Returns false if there is none. */
bool cma_early_req_take(struct cma_early_reqs *early, uint64_t now,
			bool (*has_listener)(const void *ctx, uint64_t service_id), const void *ctx,
			struct cma_early_req *request);
/* Returns when the next request expires, in ns; UINT64_MAX: none is kept. */
uint64_t cma_early_req_deadline(const struct cma_early_reqs *early);

#endif
