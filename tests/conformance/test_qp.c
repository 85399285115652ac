/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of every type: creation, limits, posting, flushing (IBA 10.2.4, 11.2.5). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static const struct {
	enum ibv_qp_type type;
	const char *name;
} types[] = {{IBV_QPT_RC, "RC"}, {IBV_QPT_UC, "UC"}, {IBV_QPT_UD, "UD"}};

#define TYPES (sizeof(types) / sizeof(types[0]))

static struct ibv_cq *cq(void)
{
	static struct ibv_cq *one;

	if (!one)
		one = ibv_create_cq(hca.context, 1024, NULL, NULL, 0);
	MUST(one);
	return one;
}

static struct ibv_qp_init_attr small(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.qp_context = (void *)0x1234,
		.send_cq = cq(),
		.recv_cq = cq(),
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
}

static int try_create(struct ibv_qp_init_attr init)
{
	const struct ibv_qp_cap asked = init.cap;
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(hca.pd, &init);
	if (!qp)
		return errno;
	rule(init.cap.max_send_wr >= asked.max_send_wr &&
		     init.cap.max_recv_wr >= asked.max_recv_wr &&
		     init.cap.max_send_sge >= asked.max_send_sge &&
		     init.cap.max_recv_sge >= asked.max_recv_sge &&
		     init.cap.max_inline_data >= asked.max_inline_data,
	     "a QP has what was asked for");
	MUST(!ibv_destroy_qp(qp));
	return 0;
}

static void creation(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct ibv_qp_init_attr init = small(types[i].type), query;
		struct ibv_qp *qp = ibv_create_qp(hca.pd, &init);
		struct ibv_qp_attr attr;

		MUST(qp);
		rule(qp->qp_num > 1 && qp->qp_num < 0xffffff,
		     "%s: its number is none of the special ones", types[i].name);
		rule(qp->qp_context == (void *)0x1234 && qp->qp_type == types[i].type &&
			     qp->pd == hca.pd && qp->send_cq == cq(),
		     "%s: it says what it is", types[i].name);
		MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &query));
		rule(attr.qp_state == IBV_QPS_RESET, "%s: a new QP is in RESET", types[i].name);
		rule(query.cap.max_send_wr == init.cap.max_send_wr &&
			     query.cap.max_recv_wr == init.cap.max_recv_wr &&
			     query.cap.max_send_sge == init.cap.max_send_sge &&
			     query.cap.max_recv_sge == init.cap.max_recv_sge &&
			     query.cap.max_inline_data == init.cap.max_inline_data,
		     "%s: a query says what creation said of its sizes", types[i].name);
		rule(query.send_cq == cq() && query.recv_cq == cq() && !query.srq &&
			     query.qp_type == types[i].type && !query.sq_sig_all &&
			     query.qp_context == (void *)0x1234,
		     "%s: and of the rest", types[i].name);
		rule_errno(0, ibv_destroy_qp(qp), "%s: it is destroyed", types[i].name);
	}
}

static void bad_types(void)
{
	static const int none[] = {IBV_QPT_DRIVER, 0, 1, 77};
	int rc;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		rc = try_create(small((enum ibv_qp_type)none[i]));
		rule(rc == EINVAL || rc == EOPNOTSUPP, "there is no QP of type %#x",
		     (unsigned int)none[i]);
	}
	if (!hca.attr.max_raw_ethy_qp) {
		rc = try_create(small(IBV_QPT_RAW_PACKET));
		rule(rc == EOPNOTSUPP || rc == EPERM || rc == EINVAL,
		     "a device without raw packets has no QP for them");
	}
}

static void size_limits(void)
{
	uint32_t wr = (uint32_t)hca.attr.max_qp_wr, sge = (uint32_t)hca.attr.max_sge;
	struct ibv_qp_init_attr init;

	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		enum ibv_qp_type type = types[i].type;

		init = small(type);
		init.cap.max_send_wr = wr;
		rule_errno(0, try_create(init), "%s: as many sends as the device says", name);
		init.cap.max_send_wr = wr + 1;
		rule_errno(EINVAL, try_create(init), "%s: and not one more send", name);
		init = small(type);
		init.cap.max_recv_wr = wr;
		rule_errno(0, try_create(init), "%s: as many receives as the device says", name);
		init.cap.max_recv_wr = wr + 1;
		rule_errno(EINVAL, try_create(init), "%s: and not one more receive", name);
		init = small(type);
		init.cap.max_send_sge = init.cap.max_recv_sge = sge;
		rule_errno(0, try_create(init), "%s: as many segments as the device says", name);
		init.cap.max_send_sge = sge + 1;
		rule_errno(EINVAL, try_create(init), "%s: and not one more segment to send", name);
		init = small(type);
		init.cap.max_recv_sge = sge + 1;
		rule_errno(EINVAL, try_create(init), "%s: nor to receive", name);
		init = small(type);
		init.cap.max_inline_data = 1 << 20;
		rule_errno(EINVAL, try_create(init), "%s: nor inline data of 1 MiB", name);
		init = small(type);
		init.cap = (struct ibv_qp_cap){0};
		rule_errno(0, try_create(init), "%s: a QP may have nothing at all", name);
	}
}

/* The greatest size of inline data that a QP may be created with. */
static uint32_t greatest_inline(void)
{
	struct ibv_qp_init_attr init = small(IBV_QPT_RC);
	uint32_t known = 0, refused = 65536;
	struct ibv_qp *qp;

	while (refused - known > 1) {
		init.cap.max_inline_data = known + (refused - known) / 2;
		uint32_t asked = init.cap.max_inline_data;

		qp = ibv_create_qp(hca.pd, &init);
		if (qp) {
			known = asked;
			MUST(!ibv_destroy_qp(qp));
		} else {
			refused = asked;
		}
	}
	return known;
}

/* Two RC QPs with the greatest sizes but for the number of requests. */
static void open_wide(struct side pair[2], uint32_t inline_data)
{
	struct ibv_qp_init_attr init = small(IBV_QPT_RC);

	init.cap.max_send_sge = init.cap.max_recv_sge = (uint32_t)hca.attr.max_sge;
	init.cap.max_inline_data = inline_data;
	init.cap.max_send_wr = init.cap.max_recv_wr = 4;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr one = init;

		pair[i].cq = ibv_create_cq(hca.context, 16, NULL, NULL, 0);
		pair[i].mr = ibv_reg_mr(hca.pd, pair[i].room, SIDE_ROOM,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		MUST(pair[i].cq && pair[i].mr);
		one.send_cq = one.recv_cq = pair[i].cq;
		pair[i].qp = ibv_create_qp(hca.pd, &one);
		MUST(pair[i].qp);
	}
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTS);
}

static void widest_requests(void)
{
	uint32_t inline_data = greatest_inline(), n = (uint32_t)hca.attr.max_sge;
	struct ibv_sge from[256], to[256];
	struct ibv_recv_wr recv = {.sg_list = to, .num_sge = (int)n}, *bad;
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	bool same = true;

	open_wide(pair, 0);
	MUST(n <= 256);
	for (uint32_t i = 0; i < SIDE_ROOM; i++)
		pair[0].room[i] = (uint8_t)(i * 13 + 3);
	/* Segments backwards in memory, so that each has to be found. */
	for (uint32_t i = 0; i < n; i++) {
		from[i] = side_sge(&pair[0], i * 16, 16);
		to[i] = side_sge(&pair[1], (n - 1 - i) * 16, 16);
	}
	wr = side_wr(&pair[0], IBV_WR_SEND, from, &pair[1]);
	wr.num_sge = (int)n;
	MUST(!ibv_post_recv(pair[1].qp, &recv, &bad) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < n; i++)
		same &= !memcmp(pair[1].room + (n - 1 - i) * 16, pair[0].room + i * 16, 16);
	rule(same, "a message of as many segments as the device says arrives");
	pair_close(pair);

	if (!inline_data)
		return;
	memset(pair, 0, sizeof(pair));
	open_wide(pair, inline_data);
	memset(pair[0].room, 0x3c, SIDE_ROOM);
	from[0] = (struct ibv_sge){(uintptr_t)pair[0].room, inline_data, 0};
	wr = side_wr(&pair[0], IBV_WR_SEND, from, &pair[1]);
	wr.send_flags |= IBV_SEND_INLINE;
	MUST(!post_recv(&pair[1], 1, 0, SIDE_ROOM));
	MUST(!post_send(&pair[0], &wr));
	memset(pair[0].room, 0, SIDE_ROOM);
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(next_wc(pair[1].cq).byte_len == inline_data && pair[1].room[inline_data - 1] == 0x3c,
	     "inline data of the greatest size arrive, as they were when they were posted");
}

static void many(void)
{
	int n = limit_of(hca.attr.max_qp), made;
	struct ibv_qp **qp = calloc((size_t)n, sizeof(struct ibv_qp *));
	struct ibv_qp_init_attr init;

	MUST(qp);
	for (made = 0; made < n; made++) {
		init = small(IBV_QPT_RC);
		qp[made] = ibv_create_qp(hca.pd, &init);
		if (!qp[made])
			break;
	}
	rule(made == n, "there are as many QPs as the device says");
	while (made--)
		MUST(!ibv_destroy_qp(qp[made]));
}

/* --- Posting. */

static void misuse_of_post(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		struct side s = {0};
		struct ibv_sge sges[SIDE_SGES + 1] = {0};
		struct ibv_send_wr wr, *bad = NULL;
		struct ibv_recv_wr recv = {.sg_list = sges}, *bad_recv = NULL;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		side_create(&s, types[i].type, 0);
		MUST(!ibv_query_qp(s.qp, &attr, IBV_QP_CAP, &init));
		sges[0] = side_sge(&s, 0, 8);
		wr = side_wr(&s, IBV_WR_SEND, sges, &s);
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: nothing is sent in RESET",
		     name);
		rule(bad == &wr, "%s: what is not sent is named", name);
		rule(post_recv(&s, 1, 0, 8) == EINVAL, "%s: nothing is received in RESET", name);
		side_up(&s, &s, IBV_QPS_INIT);
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: nothing is sent in INIT", name);
		rule_errno(0, post_recv(&s, 1, 0, 8), "%s: a receive may be posted in INIT", name);
		MUST(!side_step(&s, &s, IBV_QPS_RTR));
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: nothing is sent in RTR", name);
		rule_errno(0, post_recv(&s, 2, 0, 8), "%s: a receive may be posted in RTR", name);
		MUST(!side_step(&s, &s, IBV_QPS_RTS));
		if (init.cap.max_recv_sge == SIDE_SGES) {
			recv.num_sge = SIDE_SGES + 1;
			rule_errno(EINVAL, abs(ibv_post_recv(s.qp, &recv, &bad_recv)),
				   "%s: a receive with too many segments is refused", name);
			rule(bad_recv == &recv, "%s: and named", name);
		}
		wr.num_sge = (int)init.cap.max_send_sge + 1;
		MUST(wr.num_sge <= SIDE_SGES + 1);
		rule_errno(EINVAL, abs(ibv_post_send(s.qp, &wr, &bad)),
			   "%s: a send with too many segments is refused", name);
		rule(bad == &wr, "%s: and named, too", name);
		wr.num_sge = 1;
		sges[0].length = init.cap.max_inline_data + 1;
		wr.send_flags |= IBV_SEND_INLINE;
		rule_errno(EINVAL, abs(ibv_post_send(s.qp, &wr, &bad)),
			   "%s: inline data that are too long are refused", name);
		side_destroy(&s);
	}
}

static void overfull(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		struct side s = {0};
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		uint32_t n = 0;
		int rc;

		side_create(&s, types[i].type, 0);
		MUST(!ibv_query_qp(s.qp, &attr, IBV_QP_CAP, &init));
		side_up(&s, &s, IBV_QPS_INIT);
		while (!(rc = post_recv(&s, n, 0, 8)) && n <= init.cap.max_recv_wr)
			n++;
		rule(n == init.cap.max_recv_wr, "%s: as many receives may be posted as the QP says",
		     name);
		rule_errno(ENOMEM, abs(rc), "%s: one more is too much", name);
		side_destroy(&s);
	}
}

/* --- Flushing (IBA 10.3.1.8). */

/* A QP that has sends which nobody answers, and receives. */
static void post_both(struct side *s, int n)
{
	struct ibv_sge sge = side_sge(s, 0, 8);
	struct ibv_send_wr wr = side_wr(s, IBV_WR_SEND, &sge, NULL);

	wr.send_flags = 0;
	for (int i = 0; i < n; i++) {
		MUST(!post_recv(s, 100 + (uint64_t)i, 0, 8));
		wr.wr_id = 200 + (uint64_t)i;
		MUST(!post_send(s, &wr));
	}
}

/* Whether n sends and n receives are flushed, each in the order of posting. */
static bool flushed(struct side *s, int n)
{
	uint64_t recv = 100, send = 200;
	struct ibv_wc wc;

	for (int i = 0; i < 2 * n; i++) {
		wc = next_wc(s->cq);
		if (wc.status != IBV_WC_WR_FLUSH_ERR || wc.qp_num != s->qp->qp_num)
			return false;
		if (wc.wr_id == recv)
			recv++;
		else if (wc.wr_id == send)
			send++;
		else
			return false;
	}
	return true;
}

static void flushing(void)
{
	struct side s = {0};
	struct ibv_wc wc;

	side_create(&s, IBV_QPT_RC, 0);
	/* To itself: in RTS, but answers NAK receiver-not-ready until the receives are used up. */
	side_up(&s, &s, IBV_QPS_RTR);
	for (int i = 0; i < 5; i++)
		MUST(!post_recv(&s, 100 + (uint64_t)i, 0, 8));
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	for (int i = 0; i < 5; i++) {
		wc = next_wc(s.cq);
		rule(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 100 + (uint64_t)i,
		     "receive %d is flushed in its turn", i);
	}
	post_both(&s, 4);
	rule(flushed(&s, 4),
	     "what is posted in the error state is flushed, in order, signaled or not");
	post_both(&s, 4);
	rule(flushed(&s, 4), "and so is what comes after");
	MUST(!side_step(&s, NULL, IBV_QPS_RESET));
	rule(!any_wc(s.cq, &wc), "in RESET nothing completes any more");
	side_up(&s, &s, IBV_QPS_INIT);
	MUST(!post_recv(&s, 300, 0, 8));
	MUST(!side_step(&s, NULL, IBV_QPS_RESET));
	rule(!any_wc(s.cq, &wc), "RESET forgets receives without completing them (IBA 10.3.1.1)");
	side_up(&s, &s, IBV_QPS_INIT);
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	rule(!any_wc(s.cq, &wc), "and they do not come back");
}

static void sigs_all(void)
{
	struct ibv_qp_init_attr init = small(IBV_QPT_RC), query;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	init.sq_sig_all = 1;
	qp = ibv_create_qp(hca.pd, &init);
	MUST(qp && !ibv_query_qp(qp, &attr, IBV_QP_CAP, &query));
	rule(query.sq_sig_all == 1, "a QP that completes each send says so");
}

const struct test qp_tests[] = {
	{"creation", creation},
	{"bad_types", bad_types},
	{"size_limits", size_limits},
	{"widest_requests", widest_requests},
	{"many", many},
	{"misuse_of_post", misuse_of_post},
	{"overfull", overfull},
	{"flushing", flushing},
	{"sig_all", sigs_all},
	{NULL, NULL},
};
