/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues (IBA 10.2.9, 11.2.7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_srq *create(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(hca.pd, &init);
	if (srq)
		rule(init.attr.max_wr >= max_wr && init.attr.max_sge >= max_sge,
		     "a SRQ of %u requests of %u segments has at least that", max_wr, max_sge);
	return srq;
}

static int try_create(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq *srq = create(max_wr, max_sge);

	if (!srq)
		return errno;
	MUST(!ibv_destroy_srq(srq));
	return 0;
}

static void sizes(void)
{
	uint32_t max_wr = (uint32_t)hca.attr.max_srq_wr, max_sge = (uint32_t)hca.attr.max_srq_sge;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	rule_errno(EINVAL, try_create(0, 1), "a SRQ has a request at least");
	rule_errno(0, try_create(1, max_sge),
		   "a request may have as many segments as the device says");
	rule_errno(EINVAL, try_create(1, max_sge + 1), "and not one more");
	rule_errno(0, try_create(max_wr, 1), "a SRQ may have as many requests as the device says");
	rule_errno(EINVAL, try_create(max_wr + 1, 1), "and not one more of them");
	srq = create(1, 0);
	rule(srq && !ibv_query_srq(srq, &attr) && attr.max_sge >= 1,
	     "a SRQ that was asked for without segments has one");
}

/* A UD QP over a SRQ, which sends to itself. */
static void open_ud(struct side *s, uint32_t max_wr)
{
	s->srq = create(max_wr, 1);
	MUST(s->srq);
	side_create(s, IBV_QPT_UD, 0);
	side_up(s, NULL, IBV_QPS_RTS);
}

/* The number of the receive that a message takes. */
static uint64_t taken(struct side *s)
{
	struct ibv_sge sge = side_sge(s, 4096, 8);
	struct ibv_send_wr wr = side_wr(s, IBV_WR_SEND, &sge, s);
	struct ibv_wc wc;

	MUST(!post_send(s, &wr));
	do
		wc = next_wc(s->cq);
	while (wc.opcode != IBV_WC_RECV || wc.status);
	return wc.wr_id;
}

static void posting(void)
{
	struct side s = {0};
	struct ibv_srq_attr attr;
	struct ibv_sge sges[2] = {0};
	struct ibv_recv_wr wide = {.sg_list = sges, .num_sge = 2}, *bad = NULL;
	uint64_t n = 0;
	int rc;

	open_ud(&s, 5);
	MUST(!ibv_query_srq(s.srq, &attr));
	rc = ibv_post_srq_recv(s.srq, &wide, &bad);
	if (attr.max_sge == 1)
		rule(rc == EINVAL && bad == &wide,
		     "a request with too many segments is refused by name");
	while (n <= attr.max_wr && !(rc = post_srq_recv(&s, n, 0, 64)))
		n++;
	rule(n == attr.max_wr, "as many requests may be posted as the SRQ says");
	rule_errno(ENOMEM, rc, "one more is too much");
	rule(post_recv(&s, 0, 0, 64) == EINVAL, "a QP with a SRQ has no receive queue of its own");
	for (uint64_t i = 0; i < n; i++)
		if (taken(&s) != i)
			rule(false, "requests of a SRQ are taken in order");
	rule_errno(0, post_srq_recv(&s, 0, 0, 64), "a request that was taken leaves room");
	rule_errno(EBUSY, ibv_destroy_srq(s.srq), "a SRQ stays while a QP uses it");
}

static void sharing(void)
{
	struct side one = {0}, two = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	open_ud(&one, 4);
	two.srq = one.srq;
	side_create(&two, IBV_QPT_UD, 0);
	side_up(&two, NULL, IBV_QPS_RTS);
	MUST(!post_srq_recv(&one, 1, 0, 64) && !post_srq_recv(&one, 2, 64, 64));
	rule(taken(&one) == 1, "the first message takes the first request");
	sge = side_sge(&one, 4096, 8);
	wr = side_wr(&one, IBV_WR_SEND, &sge, &two);
	MUST(!post_send(&one, &wr));
	wc = next_wc(two.cq);
	rule(wc.wr_id == 2 && wc.qp_num == two.qp->qp_num,
	     "the second one, though to another QP, the second");
	MUST(!post_srq_recv(&one, 3, 0, 64));
	MUST(!side_step(&two, NULL, IBV_QPS_ERR));
	rule(!any_wc(two.cq, &wc),
	     "a QP in error leaves the requests of a SRQ alone (IBA 10.2.9.4)");
	rule(taken(&one) == 3, "and others go on");
}

static void limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct side s = {0};

	open_ud(&s, 7);
	for (uint64_t i = 0; i < 5; i++)
		MUST(!post_srq_recv(&s, i, 0, 64));
	rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), "a SRQ has a limit");
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.srq_limit == 3, "and says it");
	taken(&s);
	taken(&s);
	rule(!any_event(&event), "at the limit nothing is said");
	taken(&s);
	rule(next_event(&event) && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED &&
		     event.element.srq == s.srq,
	     "below it an event is raised (IBA 10.2.9.2)");
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.srq_limit == 0, "and the limit is gone with it");
	taken(&s);
	rule(!any_event(&event), "it is raised once");
	attr.srq_limit = attr.max_wr + 1;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT),
		   "a limit that is never reached is refused");
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, 1 << 5),
		   "an attribute that nobody knows is refused");
}

/* Takes requests until the next one is `to`; whether each came in its turn. */
static bool in_turn(struct side *s, uint64_t *next, uint64_t to)
{
	while (*next < to)
		if (taken(s) != (*next)++)
			return false;
	return true;
}

static void resizing(void)
{
	struct ibv_srq_attr attr = {.max_wr = 12, .srq_limit = 4000};
	uint64_t posted = 0, gone = 0;
	struct side s = {0};

	if (!(hca.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		skip("SRQs are not resized");
	open_ud(&s, 3);
	while (!post_srq_recv(&s, posted, 0, 64))
		posted++;
	rule(in_turn(&s, &gone, 1), "a SRQ works");
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		   "a SRQ is not resized below its limit");
	attr.max_wr = (uint32_t)hca.attr.max_srq_wr + 1;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR),
		   "nor beyond what the device says");
	attr.max_wr = 12;
	if (!rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), "a SRQ is made larger"))
		return;
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.max_wr >= 12, "and says so");
	while (!post_srq_recv(&s, posted, 0, 64))
		posted++;
	rule(posted - gone == attr.max_wr, "it takes as many requests as it says");
	attr.max_wr = 7;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR),
		   "it is not made too small for what is in it");
	rule(in_turn(&s, &gone, posted - 7), "which all stays");
	rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), "a SRQ is made smaller");
	rule(in_turn(&s, &gone, posted), "and what is in it comes first");
	rule_errno(0, post_srq_recv(&s, posted++, 0, 64), "another one may be posted");
	rule(in_turn(&s, &gone, posted), "which is taken in its turn");
}

static void extended(void)
{
	struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					    .srq_type = IBV_SRQT_BASIC,
					    .pd = hca.pd};
	struct ibv_srq *srq = ibv_create_srq_ex(hca.context, &init);
	struct ibv_device_attr_ex ex;

	rule(srq != NULL, "a basic SRQ is made by the extended call, too");
	if (hca.attr.device_cap_flags & IBV_DEVICE_XRC)
		return;
	init.srq_type = IBV_SRQT_XRC;
	errno = 0;
	rule(!ibv_create_srq_ex(hca.context, &init) && errno,
	     "a device without XRC makes no SRQ for it");
	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	if (ex.tm_caps.max_rndv_hdr_size)
		return;
	init.srq_type = IBV_SRQT_TM;
	init.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	init.cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	init.tm_cap = (struct ibv_tm_cap){.max_num_tags = 1, .max_ops = 1};
	MUST(init.cq);
	errno = 0;
	rule_errno(EOPNOTSUPP, ibv_create_srq_ex(hca.context, &init) ? 0 : errno,
		   "nor one that matches tags where the device does not");
}

static void many(void)
{
	int n = limit_of(hca.attr.max_srq), made;
	struct ibv_srq **srq = calloc((size_t)n, sizeof(struct ibv_srq *));

	MUST(srq);
	for (made = 0; made < n; made++) {
		struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

		srq[made] = ibv_create_srq(hca.pd, &init);
		if (!srq[made])
			break;
	}
	rule(made == n, "there are as many SRQs as the device says");
	while (made--)
		MUST(!ibv_destroy_srq(srq[made]));
}

const struct test srq_tests[] = {
	{"sizes", sizes},       {"posting", posting},   {"sharing", sharing}, {"limit", limit},
	{"resizing", resizing}, {"extended", extended}, {"many", many},       {NULL, NULL},
};
