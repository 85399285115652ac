/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_mr.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "flat_memory.h"
#include "hca/hca_device.h"

struct hca_mr {
	struct hca *hca;
	struct hca_pd *pd;
	struct ibv_mr *mr;
	struct flat_memory memory;
	struct hca_destruction destruction;
};

#define REMOTE_ACCESS \
	(URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC)
/* Flags that the HCA does not get. urxe0 has no memory windows while it has an HCA, and the IOVA
 * tells where a ZERO_BASED region begins. */
#define IGNORED_ACCESS (URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED)
#define HCA_ACCESS     (URXE_ACCESS_LOCAL_WRITE | REMOTE_ACCESS)

static bool has_rights(const struct urxe_mr_attr *attr)
{
	return !(attr->access & ~(uint32_t)(HCA_ACCESS | IGNORED_ACCESS));
}

/*
 * Whether the region's IOVA has the same offset in its page as the memory. Linux refuses to
 * register other regions; a ZERO_BASED region may be one.
 */
static bool has_same_page_offset(const struct urxe_mr_attr *attr)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return !attr->n_extents || ((uintptr_t)attr->extents[0].addr % page) == attr->iova % page;
}

/* Whether lkey and rkey of the HCA's region are equal, as the engine has one key for both. Drivers
 * give no rkey to a region without remote rights, which needs none. */
static bool has_one_key(const struct ibv_mr *mr, uint32_t access)
{
	return mr->lkey == mr->rkey || !(access & REMOTE_ACCESS);
}

static int reg_mr(struct hca_mr *mr, const struct urxe_mr_attr *attr, uint32_t *key)
{
	const struct hca_verbs *verbs = mr->hca->verbs;

	mr->mr = verbs->reg_mr(mr->pd->pd, mr->memory.addr, attr->length, attr->iova,
			       attr->access & HCA_ACCESS);
	if (!mr->mr)
		return hca_verbs_null_error();
	if (!has_one_key(mr->mr, attr->access)) {
		verbs->dereg_mr(mr->mr);
		mr->mr = NULL;
		return -EOPNOTSUPP;
	}
	*key = mr->mr->lkey;
	return 0;
}

/* Makes the object of a region: its memory as one range, and its protection domain. reg_mr() then
 * registers it. 0 or a negative errno value; -EOPNOTSUPP: the HCA cannot have the region. */
static int prepare_mr(struct hca *hca, const struct urxe_mr_attr *attr, struct hca_mr **out)
{
	struct hca_mr *mr;
	int rc;

	if (!has_rights(attr) || !has_same_page_offset(attr))
		return -EOPNOTSUPP;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->hca = hca;
	rc = flat_memory_open(&mr->memory, attr, FLAT_PIECES_MAX - hca->flat_pieces);
	if (!rc) {
		rc = hca_pd_get(hca, attr->pd, &mr->pd);
		if (rc)
			flat_memory_unmap(&mr->memory);
		else
			hca->flat_pieces += mr->memory.n_pieces;
	}
	if (rc)
		free(mr);
	else
		*out = mr;
	return rc;
}

static void dereg_mr(struct hca_destruction *destruction)
{
	struct hca_mr *mr = HCA_OBJECT_OF(destruction, struct hca_mr);

	if (mr->mr)
		mr->hca->verbs->dereg_mr(mr->mr);
	flat_memory_unmap(&mr->memory);
}

static void finish_mr(struct hca_destruction *destruction)
{
	struct hca_mr *mr = HCA_OBJECT_OF(destruction, struct hca_mr);

	mr->hca->flat_pieces -= mr->memory.n_pieces;
	hca_pd_put(mr->pd);
	free(mr);
}

/* Deregisters the region and frees its object, at once or later (destruction.h). mr->mr is NULL if
 * the HCA has not registered the region. */
static void free_mr(struct hca_mr *mr)
{
	mr->destruction = (struct hca_destruction){.call = dereg_mr, .finish = finish_mr};
	hca_destroy_object(mr->hca, &mr->destruction);
}

int hca_mr_reg(void *ctx, const struct urxe_mr_attr *attr, void **out, uint32_t *key)
{
	struct hca_mr *mr;
	int rc = prepare_mr(ctx, attr, &mr);

	if (rc)
		return rc;
	rc = reg_mr(mr, attr, key);
	if (rc)
		free_mr(mr);
	else
		*out = mr;
	return rc;
}

/*
 * Whether hca_detach() must deregister regions at once, not in the owner's hca_destroy_deferred().
 * Afterwards the engine does not know that the HCA has the region, so the program may free the
 * memory at any time. But a thread in a call without the lock may not have destroyed a queue pair
 * yet, by which a peer can write to the region.
 */
static bool ends_at_once(const struct hca *hca)
{
	return hca->detaching && __atomic_load_n(&hca->holds, __ATOMIC_ACQUIRE) > 1;
}

void hca_mr_dereg(void *region)
{
	struct hca_mr *mr = region;
	struct hca *hca = mr->hca;
	const bool defers = hca->defers;

	hca->defers &= !ends_at_once(hca);
	free_mr(mr);
	hca->defers = defers;
}

/* --- Registration outside the lock. */

int hca_mr_begin(struct hca *hca, const struct urxe_mr_attr *attr, struct hca_mr **mr)
{
	const int rc = prepare_mr(hca, attr, mr);

	if (!rc)
		hca_hold(hca);
	return rc;
}

int hca_mr_run(struct hca_mr *mr, const struct urxe_mr_attr *attr, uint32_t *key)
{
	return reg_mr(mr, attr, key);
}

void hca_mr_end(struct hca_mr *mr, bool kept)
{
	if (!kept)
		free_mr(mr);
}
