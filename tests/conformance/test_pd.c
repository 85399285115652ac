/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains (IBA 10.2.3, 11.2.2). */
#include <errno.h>
#include <stdlib.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static void lifetime(void)
{
	struct ibv_pd *one = ibv_alloc_pd(hca.context), *two = ibv_alloc_pd(hca.context);

	MUST(one && two);
	rule(one->handle != two->handle, "two domains are two");
	rule(one->context == hca.context, "a domain knows its context");
	rule_errno(0, ibv_dealloc_pd(one), "a domain is given back");
	rule_errno(0, ibv_dealloc_pd(two), "and another");
}

static void busy(void)
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
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a domain with a region stays");
	MUST(!ibv_dereg_mr(mr));
	ah = ibv_create_ah(pd, &to);
	MUST(ah);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a domain with an address handle stays");
	MUST(!ibv_destroy_ah(ah));
	srq = ibv_create_srq(pd, &srq_init);
	MUST(srq);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a domain with a SRQ stays");
	MUST(!ibv_destroy_srq(srq));
	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	rule_errno(EBUSY, ibv_dealloc_pd(pd), "a domain with a QP stays");
	MUST(!ibv_destroy_qp(qp));
	mw = hca.attr.max_mw ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;
	if (mw) {
		rule_errno(EBUSY, ibv_dealloc_pd(pd), "a domain with a window stays");
		MUST(!ibv_dealloc_mw(mw));
	}
	rule_errno(0, ibv_dealloc_pd(pd), "a domain goes when all that was in it has gone");
}

static void many(void)
{
	int n = limit_of(hca.attr.max_pd), made;
	struct ibv_pd **pd = calloc((size_t)n, sizeof(struct ibv_pd *));

	MUST(pd);
	/* One is the tests' own. */
	for (made = 0; made < n - 1; made++)
		if (!(pd[made] = ibv_alloc_pd(hca.context)))
			break;
	rule(made == n - 1, "there are as many domains as the device says");
	while (made--)
		MUST(!ibv_dealloc_pd(pd[made]));
}

const struct test pd_tests[] = {
	{"lifetime", lifetime},
	{"busy", busy},
	{"many", many},
	{NULL, NULL},
};
