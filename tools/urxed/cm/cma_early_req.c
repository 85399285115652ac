/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/cma_early_req.h"

#include <string.h>

void cma_early_req_listener_gone(struct cma_early_reqs *early, uint64_t now, uint16_t port)
{
	uint32_t i = early->n_gone++ % CMA_EARLY_MAX;

	early->gone[i].port = port;
	early->gone[i].at = now;
}

static bool had_listener(const struct cma_early_reqs *early, uint64_t now, uint64_t service_id)
{
	uint32_t n = early->n_gone < CMA_EARLY_MAX ? early->n_gone : CMA_EARLY_MAX;

	if (service_id >> 32)
		return false; /* not a service ID of an IP port (IBA annex A11) */
	for (uint32_t i = 0; i < n; i++)
		if (early->gone[i].port == (uint16_t)service_id &&
		    now - early->gone[i].at <= CMA_EARLY_GONE_NS)
			return true;
	return false;
}

static void remove_kept(struct cma_early_reqs *early, uint32_t i)
{
	struct cma_early_req *kept = &early->kept[i];

	early->n_kept--;
	memmove(kept, kept + 1, (early->n_kept - i) * sizeof(*kept));
}

/*
 * Returns false if CMA_EARLY_MAX requests are kept and the new one may displace none: a request of
 * a `known` sender displaces one of an unknown sender. A displaced request counts as lost in the
 * network, and its sender repeats it.
 */
static bool make_early_req_room(struct cma_early_reqs *early, bool known)
{
	if (early->n_kept < CMA_EARLY_MAX)
		return true;
	for (uint32_t i = 0; known && i < early->n_kept; i++) {
		if (early->kept[i].path.known)
			continue;
		remove_kept(early, i);
		return true;
	}
	return false;
}

bool cma_early_req_keep(struct cma_early_reqs *early, uint64_t now, uint64_t service_id,
			const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	struct cma_early_req *request;

	if (!had_listener(early, now, service_id) || !make_early_req_room(early, path->known))
		return false;
	request = &early->kept[early->n_kept];
	request->service_id = service_id;
	request->due = now + CMA_EARLY_KEPT_NS;
	request->path = *path;
	memcpy(request->mad, mad, sizeof(request->mad));
	early->n_kept++;
	return true;
}

bool cma_early_req_take(struct cma_early_reqs *early, uint64_t now,
			bool (*has_listener)(const void *ctx, uint64_t service_id), const void *ctx,
			struct cma_early_req *request)
{
	for (uint32_t i = 0; i < early->n_kept; i++) {
		struct cma_early_req *kept = &early->kept[i];

		if (kept->due > now && !has_listener(ctx, kept->service_id))
			continue;
		*request = *kept;
		remove_kept(early, i);
		return true;
	}
	return false;
}

/* The first request expires first: kept[] is in the order of arrival, and each request is kept for
 * the same time. */
uint64_t cma_early_req_deadline(const struct cma_early_reqs *early)
{
	return early->n_kept ? early->kept[0].due : UINT64_MAX;
}
