/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains (IBA 10.2.3, 11.2.2). */
#include <errno.h>
#include <stdlib.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static void test_alloc_and_dealloc(void)
{
	struct ibv_pd *one = ibv_alloc_pd(hca.context), *two = ibv_alloc_pd(hca.context);

	MUST(one && two);
	rule(one->handle != two->handle, "two PDs have different handles");
	rule(one->context == hca.context, "a PD has its context");
	rule_errno(0, ibv_dealloc_pd(one), "a PD can be deallocated");
	rule_errno(0, ibv_dealloc_pd(two), "a second PD can be deallocated");
}

static void test_pd_in_use_cannot_be_deallocated(void)
{
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = PORT,
				 .grh = {.dgid = hca.gid, .sgid_index = (uint8_t)hca.gid_index}};
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_cq *cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_pd *pd = ibv_alloc_pd(hca.context);
	static char room[64];
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mw *mw;

	MUST(pd && cq);
	mr = ibv_reg_mr(pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a PD with a region cannot be deallocated");
	MUST(!ibv_dereg_mr(mr));
	ah = ibv_create_ah(pd, &to);
	MUST(ah);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a PD with an address handle cannot be deallocated");
	MUST(!ibv_destroy_ah(ah));
	srq = ibv_create_srq(pd, &srq_init);
	MUST(srq);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a PD with an SRQ cannot be deallocated");
	MUST(!ibv_destroy_srq(srq));
	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a PD with a QP cannot be deallocated");
	MUST(!ibv_destroy_qp(qp));
	mw = hca.attr.max_mw ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;
	if (mw) {
		rule_errno(EBUSY, ibv_dealloc_pd(pd), "a PD with a window cannot be deallocated");
		MUST(!ibv_dealloc_mw(mw));
	}
	rule_errno(0, ibv_dealloc_pd(pd), "a PD without objects can be deallocated");
}

static void test_max_pd_can_be_created(void)
{
	int n = limit_of(hca.attr.max_pd), made;
	struct ibv_pd **pd = calloc((size_t)n, sizeof(struct ibv_pd *));

	MUST(pd);
	/* hca_open has created one PD already. */
	for (made = 0; made < n - 1; made++)
		if (!(pd[made] = ibv_alloc_pd(hca.context)))
			break;
	rule(made == n - 1, "max_pd PDs can be created");
	if (n == hca.attr.max_pd)
		rule(!ibv_alloc_pd(hca.context), "one PD more is refused");
	while (made--)
		MUST(!ibv_dealloc_pd(pd[made]));
}

const struct test pd_tests[] = {
	{"lifetime", test_alloc_and_dealloc},
	{"busy", test_pd_in_use_cannot_be_deallocated},
	{"many", test_max_pd_can_be_created},
	{NULL, NULL},
};
