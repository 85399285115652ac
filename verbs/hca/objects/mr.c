/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>

#include "flat_memory.h"
#include "hca/device.h"

struct hca_mr {
	struct hca *hca;
	struct hca_pd *pd;
	struct ibv_mr *mr;
	struct flat_memory memory;
};

#define REMOTE_ACCESS \
	(URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC)
/* Without effect: the device has no memory windows while it has an HCA. */
#define IGNORED_ACCESS (URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED)
#define HCA_ACCESS     (URXE_ACCESS_LOCAL_WRITE | REMOTE_ACCESS)

static bool has_rights(const struct urxe_mr_attr *attr)
{
	return !(attr->access & ~(uint32_t)(HCA_ACCESS | IGNORED_ACCESS));
}

/* Drivers give no rkey to a region without remote rights. */
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
		return -EOPNOTSUPP;
	}
	*key = mr->mr->lkey;
	return 0;
}

static int open_mr(struct hca_mr *mr, const struct urxe_mr_attr *attr, uint32_t *key)
{
	uint32_t *n_pieces = &mr->hca->flat_pieces;
	int rc = flat_memory_open(&mr->memory, attr, n_pieces);

	if (rc)
		return rc;
	rc = hca_pd_get(mr->hca, attr->pd, &mr->pd);
	if (!rc) {
		rc = reg_mr(mr, attr, key);
		if (rc)
			hca_pd_put(mr->pd);
	}
	if (rc)
		flat_memory_close(&mr->memory, n_pieces);
	return rc;
}

int hca_mr_reg(void *ctx, const struct urxe_mr_attr *attr, void **out, uint32_t *key)
{
	struct hca_mr *mr;
	int rc;

	if (!has_rights(attr))
		return -EOPNOTSUPP;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->hca = ctx;
	rc = open_mr(mr, attr, key);
	if (rc) {
		free(mr);
		return rc;
	}
	*out = mr;
	return 0;
}

void hca_mr_dereg(void *region)
{
	struct hca_mr *mr = region;

	mr->hca->verbs->dereg_mr(mr->mr);
	flat_memory_close(&mr->memory, &mr->hca->flat_pieces);
	hca_pd_put(mr->pd);
	free(mr);
}
