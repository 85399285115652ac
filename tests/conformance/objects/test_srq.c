/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues (IBA 10.2.9, 11.2.7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_srq *create_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(hca.pd, &init);
	if (srq)
		rule(init.attr.max_wr >= max_wr && init.attr.max_sge >= max_sge,
		     "an SRQ has at least %u requests of %u segments", max_wr, max_sge);
	return srq;
}

static int try_create(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq *srq = create_srq(max_wr, max_sge);

	if (!srq)
		return errno;
	MUST(!ibv_destroy_srq(srq));
	return 0;
}

/* ibv_create_srq(3): "irrelevant for ibv_create_srq". */
static void test_limit_at_creation(void)
{
	const uint32_t limits[] = {16, 4000, 0xdeadbeef};

	for (unsigned int i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct ibv_srq_init_attr init = {
			.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = limits[i]}};
		struct ibv_srq *srq = ibv_create_srq(hca.pd, &init);

		rule(srq, "an SRQ of 16 requests can be created with limit %u", limits[i]);
		MUST(!ibv_destroy_srq(srq));
	}
}

static void test_srq_sizes(void)
{
	uint32_t max_wr = (uint32_t)hca.attr.max_srq_wr, max_sge = (uint32_t)hca.attr.max_srq_sge;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	rule_errno(EINVAL, try_create(0, 1), "an SRQ of 0 requests is refused");
	rule_errno(0, try_create(1, max_sge), "max_srq_sge segments are accepted");
	rule_errno(EINVAL, try_create(1, max_sge + 1), "and not one more");
	rule_errno(0, try_create(max_wr, 1), "max_srq_wr requests are accepted");
	rule_errno(EINVAL, try_create(max_wr + 1, 1), "one more than the maximum is refused");
	srq = create_srq(1, 0);
	rule(srq && !ibv_query_srq(srq, &attr) && attr.max_sge >= 1,
	     "an SRQ created with 0 segments has at least one");
}

/* Opens a UD QP with a SRQ; the test sends to the QP itself. */
static void open_ud(struct side *s, uint32_t max_wr)
{
	s->srq = create_srq(max_wr, 1);
	MUST(s->srq);
	side_create(s, IBV_QPT_UD, 0);
	side_up(s, NULL, IBV_QPS_RTS);
}

/* Sends a message; returns the wr_id of the receive that it used. */
static uint64_t used_receive(struct side *s)
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

static void test_receives_are_used_in_order(void)
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
		     "a receive with too many segments is returned in bad_wr");
	while (n <= attr.max_wr && !(rc = post_srq_recv(&s, n, 0, 64)))
		n++;
	rule(n == attr.max_wr, "max_wr receives can be posted");
	rule_errno(ENOMEM, rc, "one more receive is refused");
	rule(post_recv(&s, 0, 0, 64) == EINVAL, "a QP with a SRQ has no receive queue of its own");
	for (uint64_t i = 0; i < n; i++)
		if (used_receive(&s) != i)
			rule(false, "receives of an SRQ are used in order");
	rule_errno(0, post_srq_recv(&s, 0, 0, 64), "a used receive leaves room for another");
	rule_errno(EBUSY, ibv_destroy_srq(s.srq), "an SRQ with a QP cannot be destroyed");
}

static void test_qps_share_a_srq(void)
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
	rule(used_receive(&one) == 1, "the first message uses the first receive");
	sge = side_sge(&one, 4096, 8);
	wr = side_wr(&one, IBV_WR_SEND, &sge, &two);
	MUST(!post_send(&one, &wr));
	wc = next_wc(two.cq);
	rule(wc.wr_id == 2 && wc.qp_num == two.qp->qp_num,
	     "the second message, to another QP, uses the second receive");
	MUST(!post_srq_recv(&one, 3, 0, 64));
	MUST(!side_step(&two, NULL, IBV_QPS_ERR));
	rule(!any_wc(two.cq, &wc), "a QP in ERR flushes no receives of an SRQ (IBA 10.2.9.4)");
	rule(used_receive(&one) == 3, "other QPs still use the SRQ");
}

/* rxe completes the receive in error, urxe leaves it in the SRQ. */
static void test_dropped_datagram_keeps_no_receive(void)
{
	struct side one = {0}, two = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	bool failed = false, received = false;

	open_ud(&one, 1);
	two.srq = one.srq;
	side_create(&two, IBV_QPT_UD, 0);
	side_up(&two, NULL, IBV_QPS_RTS);
	MUST(!post_srq_recv(&one, 1, 0, 64));
	sge = side_sge(&one, 4096, 100);
	wr = side_wr(&one, IBV_WR_SEND, &sge, &one);
	MUST(!post_send(&one, &wr));
	while (any_wc(one.cq, &wc))
		failed |= wc.status != IBV_WC_SUCCESS;
	if (failed)
		MUST(!post_srq_recv(&one, 1, 0, 64));
	sge = side_sge(&two, 4096, 8);
	wr = side_wr(&two, IBV_WR_SEND, &sge, &two);
	MUST(!post_send(&two, &wr));
	while (any_wc(two.cq, &wc))
		received |= !wc.status && wc.opcode == IBV_WC_RECV && wc.wr_id == 1;
	rule(received,
	     "a datagram that does not fit leaves its receive to other QPs, or completes it");
}

static void test_limit_raises_one_event(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct side s = {0};

	open_ud(&s, 7);
	for (uint64_t i = 0; i < 5; i++)
		MUST(!post_srq_recv(&s, i, 0, 64));
	rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT),
		   "the limit of an SRQ can be set");
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.srq_limit == 3, "a query returns the limit");
	used_receive(&s);
	used_receive(&s);
	rule(!any_event(&event), "no event is raised at the limit");
	used_receive(&s);
	rule(next_event(&event) && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED &&
		     event.element.srq == s.srq,
	     "an event is raised below the limit (IBA 10.2.9.2)");
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.srq_limit == 0, "the event clears the limit");
	used_receive(&s);
	rule(!any_event(&event), "the event is raised once");
	attr.srq_limit = attr.max_wr + 1;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT),
		   "a limit beyond the size is refused");
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, 1 << 5), "an unknown attribute is refused");
}

/* Uses receives up to `to`; returns whether their wr_ids were in order. */
static bool receives_in_order(struct side *s, uint64_t *next, uint64_t to)
{
	while (*next < to)
		if (used_receive(s) != (*next)++)
			return false;
	return true;
}

static void test_resize_keeps_receives(void)
{
	struct ibv_srq_attr attr = {.max_wr = 12, .srq_limit = 4000};
	uint64_t posted = 0, gone = 0;
	struct side s = {0};

	if (!(hca.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		skip("SRQs are not resized");
	open_ud(&s, 3);
	while (!post_srq_recv(&s, posted, 0, 64))
		posted++;
	rule(receives_in_order(&s, &gone, 1), "a new SRQ delivers receives");
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		   "a resize below the limit is refused");
	attr.max_wr = (uint32_t)hca.attr.max_srq_wr + 1;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR),
		   "a resize beyond max_srq_wr is refused");
	attr.max_wr = 12;
	if (!rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), "an SRQ can grow"))
		return;
	MUST(!ibv_query_srq(s.srq, &attr));
	rule(attr.max_wr >= 12, "a grown SRQ reports its size");
	while (!post_srq_recv(&s, posted, 0, 64))
		posted++;
	rule(posted - gone == attr.max_wr, "a grown SRQ holds its reported number of receives");
	attr.max_wr = 7;
	rule_errno(EINVAL, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR),
		   "a resize below the number of receives is refused");
	rule(receives_in_order(&s, &gone, posted - 7), "a refused resize keeps all entries");
	rule_errno(0, ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), "an SRQ can shrink");
	rule(receives_in_order(&s, &gone, posted), "a shrunk SRQ keeps its receives in order");
	rule_errno(0, post_srq_recv(&s, posted++, 0, 64), "a shrunk SRQ accepts a receive");
	rule(receives_in_order(&s, &gone, posted), "the new receive is used in order");
}

static void test_extended_creation(void)
{
	struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					    .srq_type = IBV_SRQT_BASIC,
					    .pd = hca.pd};
	struct ibv_srq *srq = ibv_create_srq_ex(hca.context, &init);
	struct ibv_device_attr_ex ex;

	rule(srq != NULL, "ibv_create_srq_ex creates a basic SRQ");
	if (hca.attr.device_cap_flags & IBV_DEVICE_XRC)
		return;
	init.srq_type = IBV_SRQT_XRC;
	errno = 0;
	rule(!ibv_create_srq_ex(hca.context, &init) && errno,
	     "a device without XRC refuses an XRC SRQ");
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
		   "a device without tag matching refuses a tag matching SRQ");
}

static struct ibv_srq *create_small_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(hca.pd, &init);
}

static void test_max_srq_can_be_created(void)
{
	int n = limit_of(hca.attr.max_srq), made;
	struct ibv_srq **srq = calloc((size_t)n, sizeof(struct ibv_srq *));

	MUST(srq);
	for (made = 0; made < n; made++)
		if (!(srq[made] = create_small_srq()))
			break;
	rule(made == n, "max_srq SRQs can be created");
	if (n == hca.attr.max_srq)
		rule(!create_small_srq(), "one SRQ more is refused");
	while (made--)
		MUST(!ibv_destroy_srq(srq[made]));
}

const struct test srq_tests[] = {
	{"sizes", test_srq_sizes},
	{"posting", test_receives_are_used_in_order},
	{"sharing", test_qps_share_a_srq},
	{"too_long", test_dropped_datagram_keeps_no_receive},
	{"limit_at_creation", test_limit_at_creation},
	{"limit", test_limit_raises_one_event},
	{"resizing", test_resize_keeps_receives},
	{"extended", test_extended_creation},
	{"many", test_max_srq_can_be_created},
	{NULL, NULL},
};
