/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rare cases of verbs, one in each run:
 *
 *   late_receive  receives posted to a QP in the error state complete although no thread polls
 *   channels      all events arrive on more channels than the library watches at a time
 *   cq_users      an overflowed CQ reports an error to each of its QPs, also to a QP created later
 *   rate_limit    QPs accept a rate limit by the one command that can carry it
 *   ioctls        FIONCLEX and FIONBIO work on the device and on a channel
 *   two_polls     polls of two extended CQs at once lose no completion
 *   hole          a CQ's ring lies where registered memory was, and is destroyed
 *   mappings      CQs, SRQs and QPs destroyed in random order leave no mappings of their rings
 *   on_demand     datagrams fill missing pages of an on-demand region; then waits until input ends
 *   pkey          the P_Key table equals urxed's; QPs of two partitions; the port's counters
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "asleep.h"
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define CHANNELS 24
#define EVENTS   1000 /* of each channel: more than a socket buffer holds */
#define EVENT_MS 60000

/* Until an expected datagram arrives; and in which a surplus one would. */
#define PATIENCE_MS 60000
#define QUIET_MS    200

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		err(1, "cannot open the device");
	ibv_free_device_list(list);
	return context;
}

/* A QP in the error state, which flushes its receives to a CQ with a channel. */
struct failed_qp {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_qp *make_failed_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		err(1, "cannot bring a QP to INIT");
	attr.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		err(1, "cannot create a QP in error");
	return qp;
}

static void fail_qp(struct failed_qp *f, struct ibv_context *context, struct ibv_pd *pd)
{
	f->channel = ibv_create_comp_channel(context);
	f->cq = f->channel ? ibv_create_cq(context, 1, NULL, f->channel, 0) : NULL;
	if (!f->cq)
		err(1, "cannot create a CQ with a channel");
	f->qp = make_failed_qp(pd, f->cq);
}

static void arm_and_post(struct failed_qp *f)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	if (ibv_req_notify_cq(f->cq, 0) || ibv_post_recv(f->qp, &wr, &bad))
		errx(1, "cannot arm, or post a receive");
}

static void await_event(struct failed_qp *f)
{
	struct pollfd pfd = {f->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	if (poll(&pfd, 1, EVENT_MS) != 1)
		errx(1, "no event in %d ms", EVENT_MS);
	if (ibv_get_cq_event(f->channel, &cq, &context) || cq != f->cq)
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void expect_flushed(struct failed_qp *f)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(f->cq, 1, &wc) != 1 || wc.status != IBV_WC_WR_FLUSH_ERR || wc.wr_id != 1)
		errx(1, "the receive is not flushed");
}

static void late_receive(void)
{
	struct ibv_context *context = open_device();
	struct failed_qp f;

	fail_qp(&f, context, ibv_alloc_pd(context));
	/* The engine thread sleeps, so it does not flush the receive by chance. */
	asleep_await_others();
	arm_and_post(&f);
	await_event(&f);
	expect_flushed(&f);
}

static void channels(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct failed_qp f[CHANNELS];

	for (int i = 0; i < CHANNELS; i++) {
		fail_qp(&f[i], context, pd);
		for (int n = 0; n < EVENTS; n++) {
			struct ibv_wc wc;

			arm_and_post(&f[i]);
			while (!ibv_poll_cq(f[i].cq, 1, &wc))
				;
		}
		/* While a QP is in error, the library runs it, and serves its channels as well. */
		if (ibv_modify_qp(f[i].qp, &reset, IBV_QP_STATE))
			err(1, "cannot reset a QP");
	}
	/* Reads from both ends of the list, whichever end the library watches. */
	for (int i = 0; i < CHANNELS / 2; i++) {
		for (int n = 0; n < EVENTS; n++)
			await_event(&f[i]);
		for (int n = 0; n < EVENTS; n++)
			await_event(&f[CHANNELS - 1 - i]);
	}
}

/* --- Datagrams between QPs of this process */

#define QKEY    0x11111111
#define UD_ROOM 256

struct ud {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* to this host */
	uint8_t room[UD_ROOM];
};

static int ud_init(struct ud *u, uint16_t pkey_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .pkey_index = pkey_index};

	return ibv_modify_qp(u->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_PKEY_INDEX);
}

static void ud_open(struct ud *u, struct ibv_context *context, uint16_t pkey_index)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	if (!u->pd)
		u->pd = ibv_alloc_pd(context);
	if (!u->cq)
		u->cq = ibv_create_cq(context, 32, NULL, NULL, 0);
	init.send_cq = init.recv_cq = u->cq;
	u->mr = ibv_reg_mr(u->pd, u->room, sizeof(u->room), IBV_ACCESS_LOCAL_WRITE);
	u->qp = ibv_create_qp(u->pd, &init);
	if (!u->mr || !u->qp || ibv_query_gid(context, 1, 1, &to.grh.dgid))
		err(1, "cannot create a UD QP");
	u->ah = ibv_create_ah(u->pd, &to);
	if (!u->ah || ud_init(u, pkey_index) || ibv_modify_qp(u->qp, &attr, IBV_QP_STATE))
		err(1, "cannot bring a UD QP up");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(u->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		err(1, "cannot bring a UD QP up");
}

static void ud_receive(struct ud *u)
{
	struct ibv_sge sge = {(uintptr_t)u->room, sizeof(u->room), u->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(u->qp, &wr, &bad))
		err(1, "cannot post a receive");
}

static void ud_send(struct ud *u, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .wr = {.ud = {ah, qpn, QKEY}}}, *bad;

	if (ibv_post_send(u->qp, &wr, &bad))
		err(1, "cannot post a send");
}

static unsigned int poll_completions(struct ud *u, enum ibv_wc_opcode opcode)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(u->cq, 1, &wc) == 1) {
		if (wc.status)
			errx(1, "a datagram completes in status %d", wc.status);
		n += wc.opcode == opcode;
	}
	return n;
}

/* Waits for the expected completions, and then for surplus ones. */
static bool completes(struct ud *u, enum ibv_wc_opcode opcode, unsigned int expected)
{
	unsigned int n = 0;

	for (int ms = 0; n < expected && ms < PATIENCE_MS; ms++, usleep(1000))
		n += poll_completions(u, opcode);
	for (int ms = 0; ms < QUIET_MS; ms++, usleep(1000))
		n += poll_completions(u, opcode);
	return n == expected;
}

static bool counts_bad_pkey(struct ibv_context *context)
{
	struct ibv_port_attr port;

	for (int ms = 0; ms < PATIENCE_MS; ms++, usleep(1000))
		if (ibv_query_port(context, 1, &port) || port.bad_pkey_cntr)
			return port.bad_pkey_cntr == 1;
	return false;
}

/* Waits for the next asynchronous event, which must have this type and object. */
static void expect_event(struct ibv_context *context, enum ibv_event_type type, const void *object)
{
	struct pollfd pfd = {context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	if (poll(&pfd, 1, EVENT_MS) != 1 || ibv_get_async_event(context, &event))
		errx(1, "no event: %s", ibv_event_type_str(type));
	if (event.event_type != type || (const void *)event.element.qp != object)
		errx(1, "%s in place of: %s", ibv_event_type_str(event.event_type),
		     ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

/* No thread polls. The CQ and each of its QPs get an event. */
static void cq_users(void)
{
	struct ibv_context *context = open_device();
	struct ibv_cq *full = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ud first = {.cq = full}, second = {.cq = full};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ud_open(&first, context, 0);
	ud_send(&first, first.ah, first.qp->qp_num);
	ud_send(&first, first.ah, first.qp->qp_num);
	expect_event(context, IBV_EVENT_CQ_ERR, full);
	expect_event(context, IBV_EVENT_QP_FATAL, first.qp);
	ud_open(&second, context, 0);
	ud_send(&second, second.ah, second.qp->qp_num);
	expect_event(context, IBV_EVENT_QP_FATAL, second.qp);
	if (ibv_query_qp(second.qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_ERR)
		errx(1, "a QP goes on with a CQ in error");
	if (ibv_destroy_qp(first.qp) || ibv_destroy_qp(second.qp) || ibv_destroy_cq(full))
		err(1, "cannot destroy what has had events");
}

static void pkey(void)
{
	struct ibv_context *context = open_device();
	struct ud one = {0}, two = {0};
	__be16 key;

	if (ibv_query_pkey(context, 1, 1, &key) || be16toh(key) != 0x8001)
		errx(1, "entry 1 is not what urxed was given");
	if (ibv_query_pkey(context, 1, 2, &key) || key)
		errx(1, "entry 2 is not empty");
	if (ibv_get_pkey_index(context, 1, htobe16(0x8001)) != 1)
		errx(1, "a P_Key is not found");
	ud_open(&one, context, 1);
	ud_open(&two, context, 1);
	ud_receive(&two);
	ud_receive(&two);
	ud_send(&one, one.ah, two.qp->qp_num);
	if (!completes(&two, IBV_WC_RECV, 1))
		errx(1, "two QPs of a partition do not hear each other");
	ud_open(&one, context, 0);
	ud_send(&one, one.ah, two.qp->qp_num);
	if (!completes(&two, IBV_WC_RECV, 0))
		errx(1, "a QP hears another partition");
	if (!counts_bad_pkey(context))
		errx(1, "the port does not count a bad P_Key");
	if (ibv_modify_qp(one.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE))
		err(1, "cannot reset a QP");
	if (ud_init(&one, 2) != EINVAL)
		errx(1, "a QP takes an empty entry");
}

/* Sends MODIFY_QP in its old or extended form, because libibverbs sends no rate limit for librxe.
 */
static int raw_modify(const struct ibv_qp *qp, bool extended, uint32_t mask)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_modify_qp body;
	} ex = {
		.hdr = {.command = IB_USER_VERBS_EX_CMD_MODIFY_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = sizeof(ex.body) / 8,
			.out_words = sizeof(struct ib_uverbs_ex_modify_qp_resp) / 8},
		.body = {.base = {.qp_handle = qp->handle, .attr_mask = mask},
			 .rate_limit = 1000000},
	};
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_qp body;
	} plain = {
		.hdr = {.command = IB_USER_VERBS_CMD_MODIFY_QP, .in_words = sizeof(plain) / 4},
		.body = ex.body.base,
	};
	struct ib_uverbs_ex_modify_qp_resp reply;
	ssize_t n;

	ex.ex.response = (uintptr_t)&reply;
	n = extended ? write(qp->context->cmd_fd, &ex, sizeof(ex))
		     : write(qp->context->cmd_fd, &plain, sizeof(plain));
	return n < 0 ? errno : 0;
}

static void rate_limit(void)
{
	struct ud one = {0}, two = {0};

	ud_open(&one, open_device(), 0);
	ud_open(&two, one.qp->context, 0);
	if (raw_modify(one.qp, true, IBV_QP_RATE_LIMIT))
		err(1, "a QP takes no rate limit");
	if (raw_modify(one.qp, true, IBV_QP_RATE_LIMIT << 1) != EOPNOTSUPP)
		errx(1, "an attribute that nobody knows is not refused by name");
	if (raw_modify(one.qp, false, 0))
		err(1, "a QP does not stay as it is");
	if (raw_modify(one.qp, false, IBV_QP_RATE_LIMIT) != EOPNOTSUPP)
		errx(1, "a command takes a rate limit that it cannot carry");
	for (int i = 0; i < 8; i++)
		ud_receive(&two);
	for (int i = 0; i < 8; i++)
		ud_send(&one, one.ah, two.qp->qp_num);
	if (!completes(&two, IBV_WC_RECV, 8))
		errx(1, "a QP with a rate limit loses messages");
	if (ibv_modify_qp(one.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE))
		err(1, "cannot reset a QP");
	if (raw_modify(one.qp, true, IBV_QP_RATE_LIMIT) != EINVAL)
		errx(1, "a QP in RESET takes a rate limit");
}

/* The largest inline data of a QP; no device attribute tells it. */
#define INLINE 512

static int make_inline(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type, uint32_t length)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_inline_data = length}};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		return errno;
	if (init.cap.max_inline_data < length || ibv_destroy_qp(qp))
		errx(1, "a QP for %u bytes inline takes %u", length, init.cap.max_inline_data);
	return 0;
}

static void inline_data(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);

	if (!pd || !cq)
		err(1, "cannot create what QPs need");
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		if (make_inline(pd, cq, type, INLINE))
			err(1, "a QP of type %u takes no %u bytes inline", type, INLINE);
		if (make_inline(pd, cq, type, INLINE + 1) != EINVAL)
			errx(1, "a QP of type %u takes more", type);
	}
}

#define PAGES 8

static void on_demand(void)
{
	struct ibv_context *context = open_device();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *room = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ud u = {0};
	struct ibv_mr *mr;

	ud_open(&u, context, 0);
	mr = ibv_reg_mr(u.pd, room, PAGES * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		err(1, "cannot register missing memory");
	/* `urxe show` shows a region of all memory, too. */
	if (!ibv_reg_mr(u.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND))
		err(1, "cannot register all memory");
	for (size_t i = 0; i < PAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)room + i * page, (uint32_t)page, mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		struct ibv_wc wc;
		int received = 0;

		if (ibv_post_recv(u.qp, &wr, &bad))
			err(1, "cannot post a receive");
		ud_send(&u, u.ah, u.qp->qp_num);
		while (received < 2)
			if (ibv_poll_cq(u.cq, 1, &wc) == 1 && received++ >= 0 && wc.status)
				errx(1, "completion status %d", wc.status);
	}
	while (getchar() != EOF)
		;
}

/* The errno value of ADVISE_MR with one segment. */
static int advise(const struct ibv_pd *pd, uint64_t advice, struct ibv_sge sge)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} command = {
		.hdr = {.length = sizeof(command),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_ADVISE_MR,
			.num_attrs = 4},
		.attrs = {{.attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE, .data = pd->handle},
			  {.attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE, .len = 8, .data = advice},
			  {.attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS, .len = 4},
			  {.attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST,
			   .len = sizeof(sge),
			   .data = (uintptr_t)&sge}},
	};

	errno = 0;
	return ioctl(pd->context->cmd_fd, RDMA_VERBS_IOCTL, &command) ? errno : 0;
}

static void expect_errno(int wanted, int found, const char *what)
{
	if (found != wanted)
		errx(1, "%s: errno %d, not %d", what, found, wanted);
}

static size_t count_present(void *room, size_t pages)
{
	unsigned char present[PAGES];
	size_t n = 0;

	if (mincore(room, pages * (size_t)sysconf(_SC_PAGESIZE), present))
		err(1, "mincore");
	for (size_t i = 0; i < pages; i++)
		n += present[i] & 1;
	return n;
}

static void prefetch(void)
{
	const uint64_t by_write = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct ibv_context *context = open_device();
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct ibv_pd *pd = ibv_alloc_pd(context), *other = ibv_alloc_pd(context);
	uint8_t *room = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, room, PAGES * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *all = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *pinned = ibv_reg_mr(pd, &page, sizeof(page), IBV_ACCESS_LOCAL_WRITE);

	if (!mr || !all || !pinned || !other)
		err(1, "cannot register memory");
	expect_errno(0,
		     advise(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			    (struct ibv_sge){(uintptr_t)room, page, mr->lkey}),
		     "prefetch without faults");
	if (count_present(room, PAGES))
		errx(1, "pages are present before the prefetch");
	expect_errno(0, advise(pd, by_write, (struct ibv_sge){(uintptr_t)room, 2 * page, mr->lkey}),
		     "prefetch");
	if (count_present(room, PAGES) != 2)
		errx(1, "the prefetch did not populate two pages");
	expect_errno(0,
		     advise(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
			    (struct ibv_sge){(uintptr_t)room, 3 * page, all->lkey}),
		     "prefetch in the implicit region");
	expect_errno(EFAULT,
		     advise(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
			    (struct ibv_sge){0, page, all->lkey}),
		     "prefetch of missing memory");
	expect_errno(EPERM,
		     advise(pd, by_write, (struct ibv_sge){(uintptr_t)room, page, all->lkey}),
		     "prefetch for writing without the right");
	expect_errno(
		EFAULT,
		advise(pd, by_write, (struct ibv_sge){(uintptr_t)room + 1, PAGES * page, mr->lkey}),
		"prefetch behind the region");
	expect_errno(
		ENOENT,
		advise(pd, by_write, (struct ibv_sge){(uintptr_t)room, page, mr->lkey ^ 0x100}),
		"prefetch by an unknown key");
	expect_errno(EPERM,
		     advise(other, by_write, (struct ibv_sge){(uintptr_t)room, page, mr->lkey}),
		     "prefetch by another PD");
	expect_errno(EINVAL,
		     advise(pd, by_write, (struct ibv_sge){(uintptr_t)&page, 1, pinned->lkey}),
		     "prefetch in a region that is not on-demand");
	expect_errno(EOPNOTSUPP, advise(pd, 77, (struct ibv_sge){(uintptr_t)room, page, mr->lkey}),
		     "unknown advice");
}

static unsigned int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	if (!maps)
		err(1, "/proc/self/maps");
	while ((c = getc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

#define SETS 4000

/* Objects with a ring each, and a QP with two. */
struct ring_set {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void create_rings(struct ring_set *set, struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_UC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	set->cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	set->srq = ibv_create_srq(pd, &srq);
	qp.send_cq = qp.recv_cq = set->cq;
	set->qp = set->cq ? ibv_create_qp(pd, &qp) : NULL;
	if (!set->qp || !set->srq)
		err(1, "cannot create a QP");
}

static void destroy_rings(struct ring_set *set)
{
	if (ibv_destroy_qp(set->qp) || ibv_destroy_cq(set->cq) || ibv_destroy_srq(set->srq))
		errx(1, "cannot destroy a QP");
}

static void expect_mappings(unsigned int most, const char *when)
{
	unsigned int n = count_mappings();

	if (n > most)
		errx(1, "%u mappings %s, at most %u expected", n, when, most);
}

static void mappings(void)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ring_set *sets = calloc(SETS, sizeof(*sets));
	struct ibv_srq_attr larger = {.max_wr = 100};
	unsigned int before;

	if (!pd || !sets)
		err(1, "cannot allocate");
	before = count_mappings();
	for (int i = 0; i < SETS; i++)
		create_rings(&sets[i], context, pd);
	expect_mappings(before + 100, "with all objects");
	for (int i = 0; i < SETS; i++) {
		/* A permutation: 1,999 and SETS have no common divisor. */
		struct ring_set *set = &sets[i * 1999 % SETS];

		if (i % 2 && (ibv_resize_cq(set->cq, 100) ||
			      ibv_modify_srq(set->srq, &larger, IBV_SRQ_MAX_WR)))
			errx(1, "cannot resize");
		if (i % 500 == 0)
			expect_mappings(before + 150, "while objects are destroyed");
		destroy_rings(set);
	}
	expect_mappings(before + 30, "without objects");
	create_rings(sets, context, pd);
	destroy_rings(sets);
	free(sets);
}

static void check_ioctls(int fd)
{
	int on = 1;

	if (ioctl(fd, FIONCLEX) || fcntl(fd, F_GETFD) & FD_CLOEXEC || ioctl(fd, FIOCLEX) ||
	    !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		err(1, "FIOCLEX or FIONCLEX");
	if (ioctl(fd, FIONBIO, &on) || !(fcntl(fd, F_GETFL) & O_NONBLOCK))
		err(1, "FIONBIO");
}

static void ioctls(void)
{
	struct ibv_context *context = open_device();

	check_ioctls(context->cmd_fd);
	check_ioctls(ibv_create_comp_channel(context)->fd);
}

/* A QP in error, with an extended CQ. */
static struct ibv_cq_ex *fail_qp_ex(struct failed_qp *f, struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);

	if (!cq)
		err(1, "ibv_create_cq_ex");
	f->cq = ibv_cq_ex_to_cq(cq);
	f->qp = make_failed_qp(ibv_alloc_pd(context), f->cq);
	return cq;
}

/* Polls until the next completion comes. */
static void start_poll(struct ibv_cq_ex *cq)
{
	while (ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}))
		;
}

static void two_polls(void)
{
	struct ibv_context *context = open_device();
	struct ibv_cq_ex *cqs[2];
	struct failed_qp f[2];

	alarm(60); /* ends a wait for ever */
	for (int i = 0; i < 2; i++) {
		cqs[i] = fail_qp_ex(&f[i], context);
		arm_and_post(&f[i]);
		start_poll(cqs[i]);
	}
	if (ibv_next_poll(cqs[0]) != ENOENT || ibv_next_poll(cqs[1]) != ENOENT)
		errx(1, "a surplus completion");
	ibv_end_poll(cqs[0]);
	ibv_end_poll(cqs[1]);
	for (int i = 0; i < 2; i++) {
		arm_and_post(&f[i]);
		start_poll(cqs[i]);
		if (cqs[i]->wr_id != 1)
			errx(1, "an entry that has not come yet");
		ibv_end_poll(cqs[i]);
	}
}

/* Whether a mapping of the device's memfd lies within `length` bytes from `start`. */
static bool has_ring(const char *start, size_t length)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];
	void *first;

	if (!maps)
		err(1, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:") && sscanf(line, "%p", &first) == 1)
			found |= (char *)first >= start && (char *)first < start + length;
	fclose(maps);
	return found;
}

static void hole(void)
{
	const size_t length = (size_t)16 << 20;
	struct ibv_context *context = open_device();
	char *room = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(ibv_alloc_pd(context), room, length, 0);
	struct ibv_cq *cq;

	/* The library does not see that, as if libc's free() unmapped the memory. */
	if (!mr || syscall(SYS_munmap, room, length))
		err(1, "no hole");
	cq = ibv_create_cq(context, 100000, NULL, NULL, 0);
	if (!cq || !has_ring(room, length))
		errx(1, "the CQ's ring is not in the hole");
	alarm(60); /* ends a wait for ever */
	if (ibv_destroy_cq(cq) || ibv_dereg_mr(mr))
		errx(1, "cannot destroy a CQ");
}

static const struct {
	const char *name;
	void (*run)(void);
} corners[] = {{"late_receive", late_receive}, {"channels", channels},
	       {"cq_users", cq_users},         {"pkey", pkey},
	       {"rate_limit", rate_limit},     {"inline_data", inline_data},
	       {"mappings", mappings},         {"on_demand", on_demand},
	       {"prefetch", prefetch},         {"hole", hole},
	       {"two_polls", two_polls},       {"ioctls", ioctls}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(corners) / sizeof(corners[0]); i++)
		if (!strcmp(argv[1], corners[i].name)) {
			corners[i].run();
			return 0;
		}
	fputs("usage: verbs_corners CORNER\n", stderr);
	return 2;
}
