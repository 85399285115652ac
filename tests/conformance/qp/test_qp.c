/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of every type: creation, limits, posting, flushing (IBA 10.2.4, 11.2.5). */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "privilege.h"
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

static struct ibv_qp_init_attr small_qp(enum ibv_qp_type type)
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
		     init.cap.max_recv_sge >= asked.max_recv_sge,
	     "a QP has at least the requested sizes");
	if (asked.max_inline_data)
		rule(init.cap.max_inline_data >= asked.max_inline_data,
		     "a QP has at least the requested room for inline data");
	MUST(!ibv_destroy_qp(qp));
	return 0;
}

static void test_creation(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct ibv_qp_init_attr init = small_qp(types[i].type), query;
		struct ibv_qp *qp;
		struct ibv_qp_attr attr;

		if (!hca_has(types[i].type))
			continue;
		qp = ibv_create_qp(hca.pd, &init);
		MUST(qp);
		rule(qp->qp_num > 1 && qp->qp_num < 0xffffff, "%s: its QPN is not a special one",
		     types[i].name);
		rule(qp->qp_context == (void *)0x1234 && qp->qp_type == types[i].type &&
			     qp->pd == hca.pd && qp->send_cq == cq(),
		     "%s: the QP has its attributes", types[i].name);
		MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &query));
		rule(attr.qp_state == IBV_QPS_RESET, "%s: a new QP is in RESET", types[i].name);
		rule(query.cap.max_send_wr == init.cap.max_send_wr &&
			     query.cap.max_recv_wr == init.cap.max_recv_wr &&
			     query.cap.max_send_sge == init.cap.max_send_sge &&
			     query.cap.max_recv_sge == init.cap.max_recv_sge &&
			     query.cap.max_inline_data == init.cap.max_inline_data,
		     "%s: a query returns the sizes of creation", types[i].name);
		rule(query.send_cq == cq() && query.recv_cq == cq() && !query.srq &&
			     query.qp_type == types[i].type && !query.sq_sig_all &&
			     query.qp_context == (void *)0x1234,
		     "%s: a query returns the other attributes of creation", types[i].name);
		rule_errno(0, ibv_destroy_qp(qp), "%s: the QP can be destroyed", types[i].name);
	}
}

static void test_unknown_types_are_refused(void)
{
	static const int none[] = {IBV_QPT_DRIVER, 0, 1, 77};
	int rc;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		rc = try_create(small_qp((enum ibv_qp_type)none[i]));
		rule(rc == EINVAL || rc == EOPNOTSUPP, "QP type %#x is refused",
		     (unsigned int)none[i]);
	}
}

static void test_raw_packet_qps(void)
{
	struct ibv_qp_init_attr init;

	if (!hca.attr.max_raw_ethy_qp && privilege_held(CAP_NET_RAW))
		rule_errno(EOPNOTSUPP, try_create(small_qp(IBV_QPT_RAW_PACKET)),
			   "a device without raw packets refuses a raw packet QP");
	privilege_drop(CAP_NET_RAW);
	hca_open();
	init = small_qp(IBV_QPT_RAW_PACKET);
	init.send_cq = init.recv_cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	MUST(init.send_cq);
	rule_errno(EPERM, try_create(init), "a raw packet QP needs CAP_NET_RAW");
}

static void test_size_limits(void)
{
	uint32_t wr = (uint32_t)hca.attr.max_qp_wr, sge = (uint32_t)hca.attr.max_sge;
	struct ibv_qp_init_attr init;

	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		enum ibv_qp_type type = types[i].type;

		if (!hca_has(type))
			continue;
		init = small_qp(type);
		init.cap.max_send_wr = wr;
		rule_errno(0, try_create(init), "%s: max_qp_wr sends are accepted", name);
		init.cap.max_send_wr = wr + 1;
		rule_errno(EINVAL, try_create(init), "%s: more than max_qp_wr sends are refused",
			   name);
		init = small_qp(type);
		init.cap.max_recv_wr = wr;
		rule_errno(0, try_create(init), "%s: max_qp_wr receives are accepted", name);
		init.cap.max_recv_wr = wr + 1;
		rule_errno(EINVAL, try_create(init), "%s: more than max_qp_wr receives are refused",
			   name);
		init = small_qp(type);
		init.cap.max_send_sge = init.cap.max_recv_sge = sge;
		rule_errno(0, try_create(init), "%s: max_sge segments are accepted", name);
		init.cap.max_send_sge = sge + 1;
		rule_errno(EINVAL, try_create(init),
			   "%s: more than max_sge send segments are refused", name);
		init = small_qp(type);
		init.cap.max_recv_sge = sge + 1;
		rule_errno(EINVAL, try_create(init),
			   "%s: more than max_sge receive segments are refused", name);
		init = small_qp(type);
		init.cap.max_inline_data = 1 << 20;
		rule_errno(EINVAL, try_create(init), "%s: inline data of 1 MiB are refused", name);
		init = small_qp(type);
		init.cap = (struct ibv_qp_cap){0};
		rule_errno(0, try_create(init), "%s: a QP with sizes of 0 is accepted", name);
	}
}

/* --- The largest requests */

static const struct kind {
	enum ibv_qp_type type;
	bool srq;
	uint32_t grh; /* bytes before the payload of a receive */
	const char *name;
} kinds[] = {{IBV_QPT_RC, false, 0, "RC"},
	     {IBV_QPT_UC, false, 0, "UC"},
	     {IBV_QPT_UD, false, 40, "UD"},
	     {IBV_QPT_RC, true, 0, "RC with a SRQ"}};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The largest inline size that a QP can have. */
static uint32_t greatest_inline(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = small_qp(type);
	uint32_t known = 0, refused = 65536;
	struct ibv_qp *qp;

	while (refused - known > 1) {
		init.cap.max_inline_data = known + (refused - known) / 2;
		uint32_t asked = init.cap.max_inline_data;

		qp = ibv_create_qp(hca.pd, &init);
		if (qp && init.cap.max_inline_data >= asked)
			known = asked;
		else
			refused = asked;
		MUST(!qp || !ibv_destroy_qp(qp));
	}
	return known;
}

static struct ibv_srq *widest_srq(void)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = 4, .max_sge = (uint32_t)hca.attr.max_srq_sge}};

	return ibv_create_srq(hca.pd, &init);
}

/* A QP with the largest sizes, except for the number of requests. */
static void open_largest_qp(struct side *s, const struct kind *kind, uint32_t inline_data,
			    uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = kind->type,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = (uint32_t)hca.attr.max_sge,
			.max_recv_sge = (uint32_t)hca.attr.max_sge,
			.max_inline_data = inline_data},
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = hca.pd,
		.send_ops_flags = ops,
	};

	s->cq = ibv_create_cq(hca.context, 16, NULL, NULL, 0);
	s->srq = kind->srq ? widest_srq() : NULL;
	MUST(s->cq && !s->srq == !kind->srq);
	init.send_cq = init.recv_cq = s->cq;
	init.srq = s->srq;
	s->qp = ibv_create_qp_ex(hca.context, &init);
	if (!s->qp && ops && errno == EOPNOTSUPP)
		hca_lacks("queue pairs with ibv_wr_*");
	MUST(s->qp);
	s->qpx = ops ? ibv_qp_to_qp_ex(s->qp) : NULL;
	rule(init.cap.max_inline_data >= inline_data,
	     "%s: the QP reports its maximum of inline data", kind->name);
	side_complete(s);
}

static void open_largest(struct side pair[2], const struct kind *kind, uint32_t inline_data,
			 uint64_t ops)
{
	memset(pair, 0, 2 * sizeof(*pair));
	open_largest_qp(&pair[0], kind, inline_data, ops);
	open_largest_qp(&pair[1], kind, inline_data, ops);
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTS);
	for (uint32_t i = 0; i < SIDE_ROOM; i++)
		pair[0].room[i] = (uint8_t)(i * 13 + 3);
}

static int post_segments(struct side *s, struct ibv_sge *list, uint32_t n)
{
	struct ibv_recv_wr wr = {.sg_list = list, .num_sge = (int)n}, *bad;

	return abs(s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad));
}

#define PIECE  16
#define APART  64 /* distance of the pieces; a GRH fits before the first one */
#define PIECES 128

/* Offset of piece i: in descending order, so that no two SGEs are contiguous. */
static uint32_t piece_at(uint32_t i, uint32_t n)
{
	return (n - 1 - i) * APART;
}

static bool pieces_came(struct side pair[2], const struct kind *kind, uint32_t n)
{
	bool same = true;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *to = pair[1].room + piece_at(i, n) + (i ? 0 : kind->grh);

		same &= !memcmp(to, pair[0].room + i * PIECE, PIECE);
	}
	return same;
}

static void check_max_segments(const struct kind *kind)
{
	uint32_t n = (uint32_t)hca.attr.max_sge, most = n;
	struct ibv_sge from[PIECES + 1], to[PIECES + 1];
	struct side pair[2];
	struct ibv_send_wr wr;

	if (kind->srq && (uint32_t)hca.attr.max_srq_sge < n)
		n = (uint32_t)hca.attr.max_srq_sge;
	MUST(most <= PIECES);
	open_largest(pair, kind, 0, 0);
	for (uint32_t i = 0; i <= most; i++) {
		from[i] = side_sge(&pair[0], i * PIECE, PIECE);
		to[i] = side_sge(&pair[1], i < n ? piece_at(i, n) : 0, PIECE);
	}
	to[0].length += kind->grh;
	wr = side_wr(&pair[0], IBV_WR_SEND, from, &pair[1]);
	wr.num_sge = (int)n;
	MUST(!post_segments(&pair[1], to, n) && !post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	rule(pieces_came(pair, kind, n), "%s: a message of max_sge segments arrives", kind->name);
	wr.num_sge = (int)most + 1;
	rule_errno(EINVAL, post_send(&pair[0], &wr), "%s: a send with one more segment is refused",
		   kind->name);
	to[n] = to[0];
	rule_errno(EINVAL, post_segments(&pair[1], to, n + 1),
		   "%s: a receive with one more segment is refused", kind->name);
	pair_close(pair);
}

/* Posts inline data by ibv_post_send or ibv_wr_*; returns the errno value. */
static int post_inline(struct side pair[2], uint32_t length, bool by_api)
{
	struct ibv_sge sge = {(uintptr_t)pair[0].room, length, 0};
	struct ibv_send_wr wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	struct ibv_qp_ex *q = pair[0].qpx;

	wr.send_flags |= IBV_SEND_INLINE;
	if (!by_api)
		return post_send(&pair[0], &wr);
	ibv_wr_start(q);
	q->wr_id = 1;
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(q);
	if (pair[0].ah)
		ibv_wr_set_ud_addr(q, pair[0].ah, pair[1].qp->qp_num, QKEY);
	ibv_wr_set_inline_data(q, pair[0].room, length);
	return ibv_wr_complete(q);
}

static void check_max_inline(const struct kind *kind, bool by_api)
{
	uint32_t most = greatest_inline(kind->type);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct side pair[2];
	struct ibv_wc wc;
	int rc;

	if (!most)
		return;
	open_largest(pair, kind, most, by_api ? IBV_QP_EX_WITH_SEND : 0);
	MUST(!ibv_query_qp(pair[0].qp, &attr, IBV_QP_CAP, &init));
	/* The QP may have got more than the requested size. */
	most = init.cap.max_inline_data;
	MUST(most + 1 + kind->grh <= SIDE_ROOM);
	if (kind->srq)
		MUST(!post_srq_recv(&pair[1], 1, 0, SIDE_ROOM));
	else
		MUST(!post_recv(&pair[1], 1, 0, SIDE_ROOM));
	rc = abs(post_inline(pair, most + 1, by_api));
	/* The errno of ibv_wr_* depends on the provider: EINVAL, ENOMEM, ENOSPC. */
	rule(by_api ? rc : rc == EINVAL, "%s: too long inline data are refused", kind->name);
	memset(pair[0].room, 0x3c, SIDE_ROOM);
	rule_errno(0, post_inline(pair, most, by_api),
		   "%s: inline data of the maximum length are accepted", kind->name);
	memset(pair[0].room, 0, SIDE_ROOM);
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	wc = next_wc(pair[1].cq);
	rule(wc.byte_len == most + kind->grh && pair[1].room[kind->grh] == 0x3c &&
		     pair[1].room[wc.byte_len - 1] == 0x3c,
	     "%s: inline data arrive as they were posted", kind->name);
	pair_close(pair);
}

static void test_largest_requests(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		if (!hca_has(kinds[i].type))
			continue;
		check_max_segments(&kinds[i]);
		check_max_inline(&kinds[i], false);
	}
}

/* Requests posted by ibv_wr_*. */
static void test_posting_by_ibv_wr(void)
{
	for (size_t i = 0; i < KINDS; i++)
		if (hca_has(kinds[i].type))
			check_max_inline(&kinds[i], true);
}

static struct ibv_qp *create_small_qp(void)
{
	struct ibv_qp_init_attr init = small_qp(IBV_QPT_RC);

	return ibv_create_qp(hca.pd, &init);
}

static void test_max_qp_can_be_created(void)
{
	int n = limit_of(hca.attr.max_qp), made;
	struct ibv_qp **qp = calloc((size_t)n, sizeof(struct ibv_qp *));

	MUST(qp);
	for (made = 0; made < n; made++)
		if (!(qp[made] = create_small_qp()))
			break;
	rule(made == n, "max_qp QPs can be created");
	if (n == hca.attr.max_qp)
		rule(!create_small_qp(), "one QP more is refused");
	while (made--)
		MUST(!ibv_destroy_qp(qp[made]));
}

/* --- Posting */

static void test_misuse_of_post_is_refused(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		struct side s = {0};
		struct ibv_sge sges[SIDE_SGES + 1] = {0};
		struct ibv_send_wr wr, *bad = NULL;
		struct ibv_recv_wr recv = {.sg_list = sges}, *bad_recv = NULL;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		if (!hca_has(types[i].type))
			continue;
		side_create(&s, types[i].type, 0);
		MUST(!ibv_query_qp(s.qp, &attr, IBV_QP_CAP, &init));
		sges[0] = side_sge(&s, 0, 8);
		wr = side_wr(&s, IBV_WR_SEND, sges, &s);
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: a send in RESET is refused",
		     name);
		rule(bad == &wr, "%s: a refused send is returned in bad_wr", name);
		rule(post_recv(&s, 1, 0, 8) == EINVAL, "%s: a receive in RESET is refused", name);
		side_up(&s, &s, IBV_QPS_INIT);
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: a send in INIT is refused",
		     name);
		rule_errno(0, post_recv(&s, 1, 0, 8), "%s: a receive may be posted in INIT", name);
		MUST(!side_step(&s, &s, IBV_QPS_RTR));
		rule(ibv_post_send(s.qp, &wr, &bad) == EINVAL, "%s: a send in RTR is refused",
		     name);
		rule_errno(0, post_recv(&s, 2, 0, 8), "%s: a receive may be posted in RTR", name);
		MUST(!side_step(&s, &s, IBV_QPS_RTS));
		if (init.cap.max_recv_sge == SIDE_SGES) {
			recv.num_sge = SIDE_SGES + 1;
			rule_errno(EINVAL, abs(ibv_post_recv(s.qp, &recv, &bad_recv)),
				   "%s: a receive with too many segments is refused", name);
			rule(bad_recv == &recv, "%s: the refused receive is returned in bad_wr",
			     name);
		}
		wr.num_sge = (int)init.cap.max_send_sge + 1;
		MUST(wr.num_sge <= SIDE_SGES + 1);
		rule_errno(EINVAL, abs(ibv_post_send(s.qp, &wr, &bad)),
			   "%s: a send with too many segments is refused", name);
		rule(bad == &wr,
		     "%s: the refused send with too many segments is returned in bad_wr", name);
		wr.num_sge = 1;
		sges[0].length = init.cap.max_inline_data + 1;
		wr.send_flags |= IBV_SEND_INLINE;
		rule_errno(EINVAL, abs(ibv_post_send(s.qp, &wr, &bad)),
			   "%s: a send with too long inline data is refused", name);
		side_destroy(&s);
	}
}

static void test_full_queues_refuse_requests(void)
{
	for (size_t i = 0; i < TYPES; i++) {
		const char *name = types[i].name;
		struct side s = {0};
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		uint32_t n = 0;
		int rc;

		if (!hca_has(types[i].type))
			continue;
		side_create(&s, types[i].type, 0);
		MUST(!ibv_query_qp(s.qp, &attr, IBV_QP_CAP, &init));
		side_up(&s, &s, IBV_QPS_INIT);
		while (!(rc = post_recv(&s, n, 0, 8)) && n <= init.cap.max_recv_wr)
			n++;
		rule(n == init.cap.max_recv_wr, "%s: max_recv_wr receives can be posted", name);
		rule_errno(ENOMEM, abs(rc), "%s: one more receive is refused", name);
		side_destroy(&s);
	}
}

/* --- Flushing (IBA 10.3.1.8) */

/* Posts n receives, and n sends that the peer does not answer. */
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

static void test_error_state_flushes_in_order(void)
{
	struct side s = {0};
	struct ibv_wc wc;

	side_create(&s, IBV_QPT_RC, 0);
	/* Connected to itself. In RTS it answers with RNR NAKs, so the sends stay outstanding. */
	side_up(&s, &s, IBV_QPS_RTR);
	for (int i = 0; i < 5; i++)
		MUST(!post_recv(&s, 100 + (uint64_t)i, 0, 8));
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	for (int i = 0; i < 5; i++) {
		wc = next_wc(s.cq);
		rule(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 100 + (uint64_t)i,
		     "receive %d is flushed in order", i);
	}
	post_both(&s, 4);
	rule(flushed(&s, 4),
	     "requests posted in the error state are flushed in order, signaled or not");
	post_both(&s, 4);
	rule(flushed(&s, 4), "later requests in the error state are flushed, too");
	MUST(!side_step(&s, NULL, IBV_QPS_RESET));
	rule(!any_wc(s.cq, &wc), "no request completes in RESET");
	side_up(&s, &s, IBV_QPS_INIT);
	MUST(!post_recv(&s, 300, 0, 8));
	MUST(!side_step(&s, NULL, IBV_QPS_RESET));
	rule(!any_wc(s.cq, &wc), "RESET forgets receives without completing them (IBA 10.3.1.1)");
	side_up(&s, &s, IBV_QPS_INIT);
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	rule(!any_wc(s.cq, &wc), "forgotten receives do not complete later");
}

static void test_sq_sig_all(void)
{
	struct ibv_qp_init_attr init = small_qp(IBV_QPT_RC), query;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	init.sq_sig_all = 1;
	qp = ibv_create_qp(hca.pd, &init);
	MUST(qp && !ibv_query_qp(qp, &attr, IBV_QP_CAP, &query));
	rule(query.sq_sig_all == 1, "a query returns sq_sig_all");
}

const struct test qp_tests[] = {
	{"creation", test_creation},
	{"bad_types", test_unknown_types_are_refused},
	{"raw_packets", test_raw_packet_qps},
	{"size_limits", test_size_limits},
	{"widest_requests", test_largest_requests},
	{"posting_api", test_posting_by_ibv_wr},
	{"many", test_max_qp_can_be_created},
	{"misuse_of_post", test_misuse_of_post_is_refused},
	{"overfull", test_full_queues_refuse_requests},
	{"flushing", test_error_state_flushes_in_order},
	{"sig_all", test_sq_sig_all},
	{NULL, NULL},
};
