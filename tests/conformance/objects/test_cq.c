/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues (IBA 10.2.6, 11.2.6, 11.4.2). */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_cq *create(int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(hca.context, cqe, NULL, NULL, 0);

	MUST(cq);
	return cq;
}

static int try_create(int cqe, int vector)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(hca.context, cqe, NULL, NULL, vector);
	if (!cq)
		return errno;
	rule(cq->cqe >= cqe, "a CQ has at least the requested entries");
	MUST(!ibv_destroy_cq(cq));
	return 0;
}

static void test_cq_sizes(void)
{
	rule_errno(EINVAL, try_create(0, 0), "a CQ with 0 entries is refused");
	rule_errno(0, try_create(1, 0), "a CQ may have one entry");
	rule_errno(0, try_create(hca.attr.max_cqe, 0),
		   "a CQ may have as many entries as the device says");
	rule_errno(EINVAL, try_create(hca.attr.max_cqe + 1, 0), "and not one more");
	rule_errno(0, try_create(1, hca.context->num_comp_vectors - 1),
		   "the last completion vector is accepted");
	rule_errno(EINVAL, try_create(1, hca.context->num_comp_vectors),
		   "a completion vector after the last is refused");
}

static void test_cq_in_use_cannot_be_destroyed(void)
{
	struct ibv_cq *one = create(4), *two = create(4);
	struct ibv_qp_init_attr init = {.send_cq = one,
					.recv_cq = two,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp *qp = ibv_create_qp(hca.pd, &init);

	MUST(qp);
	rule_errno(EBUSY, ibv_destroy_cq(one), "the CQ of a send queue cannot be destroyed");
	rule_errno(EBUSY, ibv_destroy_cq(two), "the CQ of a receive queue cannot be destroyed");
	MUST(!ibv_destroy_qp(qp));
	rule_errno(0, ibv_destroy_cq(one), "a CQ can be destroyed after its QPs");
	rule_errno(0, ibv_destroy_cq(two), "the other one can be released, too");
}

/* --- A QP in the error state, whose flushed sends are a source of completions */

struct source {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint64_t posted;
};

static struct source source_open(int cqe)
{
	struct source s = {.cq = create(cqe)};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = s.cq,
					.recv_cq = s.cq,
					.cap = {.max_send_wr = 64, .max_recv_wr = 1}};
	struct side side = {0};

	side.qp = s.qp = ibv_create_qp(hca.pd, &init);
	MUST(s.qp && !side_step(&side, NULL, IBV_QPS_INIT));
	MUST(!side_step(&side, NULL, IBV_QPS_ERR));
	return s;
}

static void source_post(struct source *s, int n)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	int rc;

	while (n--) {
		wr.wr_id = s->posted++;
		/* The queue is full until earlier sends are flushed. */
		while ((rc = ibv_post_send(s->qp, &wr, &bad)) == ENOMEM)
			sched_yield();
		MUST(!rc);
	}
}

/* Whether the next n completions have ascending wr_ids from `first`. */
static bool completions_follow(struct source *s, uint64_t first, int n)
{
	for (uint64_t id = first; id < first + (uint64_t)n; id++)
		if (next_wc(s->cq).wr_id != id)
			return false;
	return true;
}

static void test_polling_keeps_the_order(void)
{
	struct source s = source_open(64);
	struct ibv_wc wc[16];
	int n, got = 0;

	rule(ibv_poll_cq(s.cq, 1, wc) == 0, "a poll of an empty CQ returns 0");
	source_post(&s, 10);
	rule(ibv_poll_cq(s.cq, 0, wc) == 0, "a poll for 0 completions returns 0");
	while (got < 10) {
		n = ibv_poll_cq(s.cq, 3, wc);
		MUST(n >= 0 && n <= 3);
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id != (uint64_t)got + (uint64_t)i)
				rule(false, "completions come in order");
		got += n;
	}
	rule(got == 10, "each completion comes once");
	rule(ibv_poll_cq(s.cq, 16, wc) == 0, "the CQ is empty after its last completion");
}

static void test_resize_keeps_completions(void)
{
	struct source s = source_open(7);
	struct ibv_wc wc;

	source_post(&s, 4);
	rule(completions_follow(&s, 0, 4), "a new CQ works");
	source_post(&s, 6); /* around the end of a ring of 8 */
	completions_follow(&s, 4, 1);
	if (ibv_resize_cq(s.cq, 0) == EOPNOTSUPP)
		hca_lacks("ibv_resize_cq");
	rule_errno(EINVAL, ibv_resize_cq(s.cq, 0), "a resize to 0 entries is refused");
	rule_errno(EINVAL, ibv_resize_cq(s.cq, hca.attr.max_cqe + 1),
		   "a resize beyond max_cqe is refused");
	rule_errno(0, ibv_resize_cq(s.cq, 40), "a CQ can grow");
	rule(s.cq->cqe >= 40, "a grown SRQ reports its size");
	source_post(&s, 30);
	rule(completions_follow(&s, 5, 35), "a grown CQ keeps its completions in order");
	source_post(&s, 8);
	MUST(completions_follow(&s, 40, 1));
	rule_errno(EINVAL, ibv_resize_cq(s.cq, 3),
		   "a resize below the number of completions is refused");
	rule(completions_follow(&s, 41, 7), "a refused resize keeps all entries");
	rule_errno(0, ibv_resize_cq(s.cq, 3), "an empty CQ can shrink");
	source_post(&s, 3);
	rule(completions_follow(&s, 48, 3), "a shrunk CQ delivers completions");
	rule_errno(0, ibv_resize_cq(s.cq, hca.attr.max_cqe), "a CQ can grow to max_cqe");
	source_post(&s, 20);
	rule(completions_follow(&s, 51, 20), "the largest CQ delivers completions");
	rule(!ibv_poll_cq(s.cq, 1, &wc), "no completion arrives twice");
}

/* A CQ of the advertised size holds that many completions. */
static void test_largest_cq_can_be_filled(void)
{
	int n = hca.attr.max_cqe;
	struct source s = source_open(n);
	struct ibv_wc wc;

	if (n > 1 << 20)
		skip("a CQ of %d entries takes too long to fill", n);
	source_post(&s, n);
	rule(completions_follow(&s, 0, n), "a CQ holds as many completions as it has entries");
	rule(!ibv_poll_cq(s.cq, 1, &wc), "and not one more");
}

static void test_max_cq_can_be_created(void)
{
	int n = limit_of(hca.attr.max_cq), made;
	struct ibv_cq **cq = calloc((size_t)n, sizeof(struct ibv_cq *));

	MUST(cq);
	for (made = 0; made < n; made++)
		if (!(cq[made] = ibv_create_cq(hca.context, 1, NULL, NULL, 0)))
			break;
	rule(made == n, "max_cq CQs can be created");
	if (n == hca.attr.max_cq)
		rule(!ibv_create_cq(hca.context, 1, NULL, NULL, 0), "one CQ more is refused");
	while (made--)
		MUST(!ibv_destroy_cq(cq[made]));
}

/* --- Extended CQs */

static struct ibv_cq_ex *try_create_ex(uint64_t wc_flags, uint32_t comp_mask, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16, .wc_flags = wc_flags, .comp_mask = comp_mask, .flags = flags};

	errno = 0;
	return ibv_create_cq_ex(hca.context, &init);
}

static struct ibv_cq_ex *create_ex(uint64_t wc_flags)
{
	struct ibv_cq_ex *cq = try_create_ex(wc_flags, 0, 0);

	if (!cq && errno == EOPNOTSUPP)
		hca_lacks("extended CQs");
	MUST(cq);
	return cq;
}

#define BASIC                                                                   \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |      \
	 IBV_WC_EX_WITH_DLID_PATH_BITS)

static void test_extended_cq_attributes(void)
{
	struct ibv_device_attr_ex ex;
	struct ibv_cq_ex *cq = create_ex(BASIC);

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	rule_errno(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)),
		   "an extended CQ can be destroyed as a CQ");
	rule_errno(EOPNOTSUPP, try_create_ex(UINT64_C(1) << 40, 0, 0) ? 0 : errno,
		   "an unknown completion field is refused");
	rule_errno(EINVAL, try_create_ex(BASIC, 1u << 20, 0) ? 0 : errno,
		   "an unknown attribute is refused");
	if (!ex.completion_timestamp_mask) {
		rule_errno(EOPNOTSUPP,
			   try_create_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0, 0) ? 0 : errno,
			   "time stamps are refused without a device clock");
		cq = try_create_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0, 0);
		rule_errno(EOPNOTSUPP, cq ? 0 : errno,
			   "wall clock time stamps are refused without a device clock");
	}
	cq = try_create_ex(BASIC, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	rule(cq != NULL, "a single-threaded CQ can be created");
}

static void post_three(struct side pair[2])
{
	struct ibv_sge sge = side_sge(&pair[0], 0, 100);
	struct ibv_send_wr wr = side_wr(&pair[0], IBV_WR_SEND_WITH_IMM, &sge, &pair[1]);

	for (uint64_t id = 0; id < 3; id++)
		MUST(!post_recv(&pair[1], id, 0, 200));
	wr.imm_data = htobe32(0xabcdef01);
	for (uint64_t id = 0; id < 3; id++) {
		wr.wr_id = id;
		MUST(!post_send(&pair[0], &wr));
		next_wc(pair[0].cq);
	}
}

/*
 * Begins a poll as soon as the CQ has an entry. A poll need not return all entries that are on
 * their way, for example from an HCA below the device.
 */
static int await_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	int rc;

	do
		rc = ibv_start_poll(cq, &attr);
	while (rc == ENOENT);
	return rc;
}

static void check_entry(struct ibv_cq_ex *cq, const struct side *receiver, uint64_t id)
{
	rule(cq->wr_id == id && cq->status == IBV_WC_SUCCESS,
	     "entry %d has the wr_id of its request", (int)id);
	rule(ibv_wc_read_opcode(cq) == IBV_WC_RECV && ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM &&
		     ibv_wc_read_imm_data(cq) == htobe32(0xabcdef01) &&
		     ibv_wc_read_byte_len(cq) == 100 && !ibv_wc_read_vendor_err(cq) &&
		     ibv_wc_read_qp_num(cq) == receiver->qp->qp_num,
	     "entry %d has the fields of its message", (int)id);
}

static void test_extended_polling(void)
{
	struct ibv_cq_ex *cq = create_ex(BASIC);
	struct ibv_poll_cq_attr attr = {0}, unknown = {.comp_mask = 1};
	struct side pair[2] = {0};
	uint64_t id = 0;
	int rc;

	rule_errno(ENOENT, ibv_start_poll(cq, &attr),
		   "ibv_start_poll on an empty CQ returns ENOENT");
	rule_errno(EINVAL, ibv_start_poll(cq, &unknown), "an unknown attribute is refused");
	pair[1].cq = ibv_cq_ex_to_cq(cq);
	pair_open(pair, IBV_QPT_RC, 0);
	post_three(pair);
	while (id < 3) {
		for (rc = await_poll(cq); !rc; rc = ibv_next_poll(cq), id++)
			check_entry(cq, &pair[1], id);
		rule_errno(ENOENT, rc, "ibv_next_poll after the last entry returns ENOENT");
		ibv_end_poll(cq);
	}
	rule(id == 3, "polls return each entry once");
	rc = ibv_start_poll(cq, &attr);
	if (!rule_errno(ENOENT, rc, "a poll after the last entry returns ENOENT"))
		return;
	post_three(pair);
	rule(!await_poll(cq) && !cq->wr_id, "a later poll begins with the first new entry");
	ibv_end_poll(cq);
	rule(!await_poll(cq) && cq->wr_id == 1, "the next poll continues after the ended poll");
	ibv_end_poll(cq);
}

static int (*inner_poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static unsigned int outer_polls;

static int outer_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	/* A poll that calls itself without end would only overflow the stack. */
	MUST(++outer_polls < 100);
	return inner_poll(cq, n, wc);
}

/* A program that traces its polls puts its own function into the table of the context. */
static void test_replaced_poll_function(void)
{
	struct ibv_wc wc;

	create(4);
	inner_poll = hca.context->ops.poll_cq;
	hca.context->ops.poll_cq = outer_poll;
	rule(ibv_poll_cq(create(4), 1, &wc) == 0 && outer_polls == 1,
	     "a program may wrap poll_cq, also before it creates further CQs");
	hca.context->ops.poll_cq = inner_poll;
}

static void test_moderation(void)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 1, .cq_period = 1}};
	struct ibv_device_attr_ex ex;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	if (!ex.cq_mod_caps.max_cq_count)
		rule_errno(EOPNOTSUPP, ibv_modify_cq(create(4), &attr),
			   "moderation is refused on a device without it");
	else
		rule_errno(0, ibv_modify_cq(create(4), &attr),
			   "moderation succeeds on a device with it");
}

const struct test cq_tests[] = {
	{"sizes", test_cq_sizes},
	{"in_use", test_cq_in_use_cannot_be_destroyed},
	{"polling", test_polling_keeps_the_order},
	{"resizing", test_resize_keeps_completions},
	{"full", test_largest_cq_can_be_filled},
	{"many", test_max_cq_can_be_created},
	{"ex_creation", test_extended_cq_attributes},
	{"ex_polling", test_extended_polling},
	{"wrapped", test_replaced_poll_function},
	{"moderation", test_moderation},
	{NULL, NULL},
};
