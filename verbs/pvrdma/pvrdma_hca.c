/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pvrdma_hca.h"

#include <rxe/offload.h>

#include "commands/pvrdma_command.h"
#include "object.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_srq.h"

static void tell_gid(const struct pvrdma *dev, uint32_t index)
{
	struct urxe_gid gid;
	bool v1;
	const bool is_set = urxe_gid_get(dev->engine, index, &gid, &v1);

	dev->hca->set_gid(dev->hca->ctx, index, is_set ? &gid : NULL, is_set && v1);
}

static bool may_attach(const struct pvrdma *dev)
{
	return dev->hca && dev->active && !dev->hca_attached && !dev->no_master && !dev->paused;
}

static void tell_gids(const struct pvrdma *dev)
{
	for (uint32_t i = 0; i < URXE_MAX_GIDS; i++)
		tell_gid(dev, i);
}

static bool has_common_gid(const struct pvrdma *dev)
{
	for (uint32_t i = 0; i < URXE_MAX_GIDS; i++)
		if (dev->hca->has_gid(dev->hca->ctx, i))
			return true;
	return false;
}

bool pv_hca_serves(const struct pv_pd *pd)
{
	const struct pvrdma *dev = pd->object.dev;

	return pd->uc && dev->hca_attached && has_common_gid(dev);
}

int pv_hca_prepare(const struct pv_pd *pd, const struct urxe_path *path, bool connects)
{
	const struct pvrdma_hca *hca = pd->object.dev->hca;

	return hca->prepare(hca->ctx, pd->object.handle, path, connects);
}

void pv_hca_attach(struct pvrdma *dev)
{
	if (!may_attach(dev))
		return;
	tell_gids(dev);
	if (!has_common_gid(dev))
		return;
	dev->hca_attached = true;
	dev->hca->attach(dev->hca->ctx, dev->engine);
}

void pv_hca_detach(struct pvrdma *dev)
{
	if (!dev->hca_attached)
		return;
	/* Puts all that the HCA has written so far into the log of changed pages. */
	urxe_offload_report_writes(dev->engine);
	dev->hca->detach(dev->hca->ctx);
	dev->hca_attached = false;
	pv_qp_requeue_unprepared(dev);
	pv_command_retry(dev);
}

void pv_hca_set_gid(struct pvrdma *dev, uint32_t index)
{
	if (!dev->hca)
		return;
	if (dev->hca_attached)
		tell_gid(dev, index);
	else
		pv_hca_attach(dev);
}

void pvrdma_set_hca(struct pvrdma *dev, const struct pvrdma_hca *hca)
{
	pv_hca_detach(dev);
	dev->hca = hca;
	pv_hca_attach(dev);
}

void pvrdma_hca_gids_changed(struct pvrdma *dev)
{
	pv_hca_attach(dev);
}

bool pvrdma_has_hca(const struct pvrdma *dev)
{
	return dev->hca_attached;
}

bool pvrdma_qp_is_of_program(const void *of)
{
	return ((const struct pv_qp *)of)->pd->uc;
}

/* --- Requests */

/* Posts receive requests for which the engine's queue had no room. */
static void post_recvs_behind(struct pvrdma *dev)
{
	struct pv_srq *srq;
	struct pv_qp *qp;
	uint32_t at;

	if (!dev->recvs_behind)
		return;
	dev->recvs_behind = false;
	for (at = 0; (qp = pv_object_next(dev, PV_QP, &at));)
		pv_qp_post_recvs(qp);
	for (at = 0; (srq = pv_object_next(dev, PV_SRQ, &at));)
		pv_srq_refill_used(srq);
}

void pvrdma_hca_polled(struct pvrdma *dev, uint64_t now)
{
	pv_pass_time(dev, now);
	if (!dev->hca_attached)
		return;
	pv_qp_post_waiting(dev);
	post_recvs_behind(dev);
}

bool pvrdma_command_waits(const struct pvrdma *dev)
{
	return dev->command_deferred;
}

void pvrdma_hca_prepared(struct pvrdma *dev, uint64_t now)
{
	pv_pass_time(dev, now);
	if (!dev->hca_attached)
		return;
	/* The command goes before datagrams, which could use up the HCA's preparations: the driver
	 * gives up a command after 10 s. */
	pv_command_retry(dev);
	pv_qp_requeue_unprepared(dev);
	pv_qp_post_waiting(dev);
}

/* --- Memory */

static uint64_t machine_pages(const struct pvrdma *dev)
{
	const struct vnic_guest_region *regions;
	uint64_t pages = 0;
	uint32_t count;

	regions = vnic_guest_memory_regions(dev->attr.memory, &count);
	for (uint32_t i = 0; i < count; i++)
		pages += regions[i].size >> PV_PAGE_SHIFT;
	return pages;
}

/* The regions may already exceed the limit, because memory may have been removed since. */
bool pv_hca_has_room(const struct pvrdma *dev, uint64_t bytes)
{
	const struct urxe_offload_memory has = urxe_offload_memory(dev->engine);
	const uint64_t used = has.pages + has.regions * PV_HCA_REGION_PAGES;
	const uint64_t most = PV_HCA_TIMES * machine_pages(dev);
	const uint64_t more = urxe_offload_pages(bytes) + PV_HCA_REGION_PAGES;

	return !dev->hca_attached || (used <= most && more <= most - used);
}

/* Returns the limit of max_mr (pv_hca_limit). The driver reads max_mr only once. */
static uint32_t most_regions(const struct pvrdma *dev)
{
	const uint64_t n =
		PV_HCA_TIMES * machine_pages(dev) / (urxe_offload_pages(1) + PV_HCA_REGION_PAGES);

	if (n < PV_HCA_LEAST_REGIONS)
		return PV_HCA_LEAST_REGIONS;
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

void pv_hca_withdraw(struct urxe_mr *mr, const struct urxe_extent *bytes)
{
	if (!bytes || urxe_mr_has_bytes(mr, bytes))
		urxe_offload_withdraw(mr);
}

void pvrdma_report_hca_writes(struct pvrdma *dev)
{
	if (dev->hca_attached)
		urxe_offload_report_writes(dev->engine);
}

/* --- Limits */

static void limit(uint32_t *value, uint32_t of_hca)
{
	if (*value > of_hca)
		*value = of_hca;
}

/* Returns the largest power of two that is at most n: Linux' driver rounds the sizes of queues, and
 * the numbers of segments of their requests, up to powers of two. */
static uint32_t power_of_two_below(uint32_t n)
{
	uint32_t power = 1;

	while (power <= n / 2)
		power *= 2;
	return power;
}

void pv_hca_limit(const struct pvrdma *dev, struct pv_device_caps *caps)
{
	const struct pvrdma_hca *hca = dev->hca;

	if (!hca)
		return;
	limit(&caps->max_qp_wr, power_of_two_below(hca->max_qp_wr));
	limit(&caps->max_srq_wr, power_of_two_below(hca->max_srq_wr));
	limit(&caps->max_sge, power_of_two_below(hca->max_sge));
	limit(&caps->max_sge_rd, power_of_two_below(hca->max_sge));
	limit(&caps->max_srq_sge, power_of_two_below(hca->max_srq_sge));
	limit(&caps->max_qp_rd_atom, hca->max_rd_atomic);
	limit(&caps->max_qp_init_rd_atom, hca->max_init_rd_atomic);
	limit(&caps->max_mr, most_regions(dev));
	if (!hca->atomics)
		caps->atomic_ops = 0;
}
