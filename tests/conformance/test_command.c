/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands as they cross the boundary, for what libibverbs or a provider never sends: the
 * write() form of uverbs (rdma/ib_user_verbs.h), which all kernels still have.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define WORDS 64 /* room for a request, in 32-bit words */

/* The errno value of a request with its header; out: how many bytes there are for the answer. */
static int request(uint32_t command, const void *body, size_t size, size_t out)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t body[4 * WORDS];
	} whole = {.hdr = {.command = command,
			   .in_words = (uint16_t)((sizeof(whole.hdr) + size) / 4),
			   .out_words = (uint16_t)(out / 4)}};

	MUST(size <= sizeof(whole.body));
	memcpy(whole.body, body, size);
	if (write(hca.context->cmd_fd, &whole, sizeof(whole.hdr) + size) < 0)
		return errno;
	return 0;
}

static int request_ex(uint32_t command, const void *body, size_t size, void *answer, size_t out)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t body[4 * WORDS];
	} whole = {.hdr = {.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			   .in_words = (uint16_t)(size / 8),
			   .out_words = (uint16_t)(out / 8)},
		   .ex = {.response = (uintptr_t)answer}};

	MUST(size <= sizeof(whole.body));
	memcpy(whole.body, body, size);
	if (write(hca.context->cmd_fd, &whole, sizeof(whole.hdr) + sizeof(whole.ex) + size) < 0)
		return errno;
	return 0;
}

static void framing(void)
{
	struct ib_uverbs_query_port_resp answer;
	struct ib_uverbs_query_port query = {.response = (uintptr_t)&answer, .port_num = PORT};
	const uint32_t number = IB_USER_VERBS_CMD_QUERY_PORT;
	struct ib_uverbs_cmd_hdr lone = {.command = number, .in_words = 2};
	struct ib_uverbs_cmd_hdr lies = {.command = number, .in_words = 40, .out_words = 40};

	rule_errno(0, request(number, &query, sizeof(query), sizeof(answer)),
		   "a command is answered");
	rule(answer.gid_tbl_len == (uint32_t)hca.port.gid_tbl_len &&
		     answer.state == IBV_PORT_ACTIVE,
	     "as libibverbs is");
	rule_errno(ENOSPC, request(number, &query, sizeof(query) - 4, sizeof(answer)),
		   "a request that is too short is refused");
	rule_errno(ENOSPC, request(number, &query, sizeof(query), sizeof(answer) - 4),
		   "and one with too little room for the answer");
	rule(write(hca.context->cmd_fd, &lone, sizeof(lone)) < 0 && errno == ENOSPC,
	     "and a header alone");
	rule(write(hca.context->cmd_fd, &lies, sizeof(lies)) < 0 && errno == EINVAL,
	     "and one whose length is not what it says");
	rule(write(hca.context->cmd_fd, &lies, 3) < 0 && errno == EINVAL, "and a part of a header");
	rule_errno(EOPNOTSUPP, request(77, &query, sizeof(query), sizeof(answer)),
		   "a command that nobody knows is refused");
	rule_errno(EINVAL, request(number | 1u << 28, &query, sizeof(query), sizeof(answer)),
		   "and one with flags that nobody knows");
	query.response = 8;
	rule_errno(EFAULT, request(number, &query, sizeof(query), sizeof(answer)),
		   "an answer that nothing takes is an error");
}

static void framing_ex(void)
{
	struct ib_uverbs_ex_query_device query = {0};
	struct ib_uverbs_ex_query_device_resp answer = {0};
	const uint32_t number = IB_USER_VERBS_EX_CMD_QUERY_DEVICE;
	struct {
		struct ib_uverbs_ex_query_device known;
		uint64_t more;
	} longer = {.more = 0};
	size_t least = offsetof(struct ib_uverbs_ex_query_device_resp, response_length) + 4;

	rule_errno(0, request_ex(number, &query, sizeof(query), &answer, sizeof(answer)),
		   "an extended command is answered");
	rule(answer.response_length >= least && answer.response_length <= sizeof(answer),
	     "with the length of what it knows");
	rule_errno(0, request_ex(number, &longer, sizeof(longer), &answer, sizeof(answer)),
		   "what it does not know may be zero");
	longer.more = 1;
	rule_errno(EOPNOTSUPP, request_ex(number, &longer, sizeof(longer), &answer, sizeof(answer)),
		   "and is refused where it is not");
	query.comp_mask = 1;
	rule_errno(EINVAL, request_ex(number, &query, sizeof(query), &answer, sizeof(answer)),
		   "a mask that nobody knows is refused");
	query.comp_mask = 0;
	rule_errno(EINVAL, request_ex(number, &query, sizeof(query), NULL, sizeof(answer)),
		   "an answer needs an address");
	rule_errno(EOPNOTSUPP, request_ex(60, &query, sizeof(query), &answer, sizeof(answer)),
		   "an extended command that nobody knows is refused");
}

/* --- Every command that librxe and libibverbs can send, about nothing that there is. */

#define NOTHING 0xfffff /* no handle */
#define ANSWER  512     /* bytes, enough for each */

struct asked {
	uint32_t number;
	const char *name;
	size_t size, out; /* bytes of the request, and of the answer */
	int handle;       /* where the request has one; -1: it has none */
	int error;        /* errno value, in the order of the kernel's checks */
};

#define SIZE(type) sizeof(struct ib_uverbs_##type)
#define NONE(id, request, answer, errno_value)                                      \
	{                                                                           \
		IB_USER_VERBS_CMD_##id, #id, SIZE(request), answer, -1, errno_value \
	}
#define OF(id, request, member, answer, errno_value)                              \
	{                                                                         \
		IB_USER_VERBS_CMD_##id, #id, SIZE(request), answer,               \
			offsetof(struct ib_uverbs_##request, member), errno_value \
	}
#define NOT_THERE(id)                                                        \
	{                                                                    \
		IB_USER_VERBS_CMD_##id, #id, ANSWER / 4, 256, -1, EOPNOTSUPP \
	}

#define NOT_THERE_EX(id)                                                              \
	{                                                                             \
		IB_USER_VERBS_EX_CMD_##id, "EX_" #id, ANSWER / 4, 256, -1, EOPNOTSUPP \
	}

static const struct asked commands[] = {
	NONE(GET_CONTEXT, get_context, SIZE(get_context_resp), EINVAL), /* it is one already */
	NONE(QUERY_DEVICE, query_device, SIZE(query_device_resp), 0),
	NONE(QUERY_PORT, query_port, SIZE(query_port_resp), EINVAL),
	NONE(ALLOC_PD, alloc_pd, SIZE(alloc_pd_resp), 0),
	OF(DEALLOC_PD, dealloc_pd, pd_handle, 0, ENOENT),
	OF(CREATE_AH, create_ah, pd_handle, SIZE(create_ah_resp), EINVAL),
	OF(DESTROY_AH, destroy_ah, ah_handle, 0, ENOENT),
	OF(REG_MR, reg_mr, pd_handle, SIZE(reg_mr_resp), ENOENT),
	OF(DEREG_MR, dereg_mr, mr_handle, 0, ENOENT),
	OF(ALLOC_MW, alloc_mw, pd_handle, SIZE(alloc_mw_resp), ENOENT),
	OF(DEALLOC_MW, dealloc_mw, mw_handle, 0, ENOENT),
	NONE(CREATE_COMP_CHANNEL, create_comp_channel, SIZE(create_comp_channel_resp), 0),
	OF(CREATE_CQ, create_cq, comp_channel, SIZE(create_cq_resp), EBADF),
	OF(RESIZE_CQ, resize_cq, cq_handle, SIZE(resize_cq_resp), ENOENT),
	OF(REQ_NOTIFY_CQ, req_notify_cq, cq_handle, 0, ENOENT),
	OF(DESTROY_CQ, destroy_cq, cq_handle, SIZE(destroy_cq_resp), ENOENT),
	OF(CREATE_QP, create_qp, pd_handle, SIZE(create_qp_resp), EINVAL),
	OF(QUERY_QP, query_qp, qp_handle, SIZE(query_qp_resp), ENOENT),
	OF(MODIFY_QP, modify_qp, qp_handle, 0, ENOENT),
	OF(DESTROY_QP, destroy_qp, qp_handle, SIZE(destroy_qp_resp), ENOENT),
	OF(POST_SEND, post_send, qp_handle, SIZE(post_send_resp), EINVAL),
	OF(ATTACH_MCAST, attach_mcast, qp_handle, 0, ENOENT),
	OF(DETACH_MCAST, detach_mcast, qp_handle, 0, ENOENT),
	OF(CREATE_SRQ, create_srq, pd_handle, SIZE(create_srq_resp), ENOENT),
	OF(MODIFY_SRQ, modify_srq, srq_handle, 0, ENOENT),
	OF(QUERY_SRQ, query_srq, srq_handle, SIZE(query_srq_resp), ENOENT),
	OF(DESTROY_SRQ, destroy_srq, srq_handle, SIZE(destroy_srq_resp), ENOENT),
	/* Those that no kernel has. */
	NOT_THERE(MODIFY_AH),
	NOT_THERE(QUERY_AH),
	NOT_THERE(REG_SMR),
	NOT_THERE(QUERY_MR),
	NOT_THERE(BIND_MW),
	NOT_THERE(PEEK_CQ),
};

/* Those that libibverbs has calls for, and the kernel for other devices; librxe sends none. */
static const struct asked lacking[] = {
	NOT_THERE(OPEN_XRCD),
	NOT_THERE(CLOSE_XRCD),
	NOT_THERE(OPEN_QP),
};

static const struct asked lacking_ex[] = {
	NOT_THERE_EX(CREATE_FLOW),         NOT_THERE_EX(DESTROY_FLOW),
	NOT_THERE_EX(CREATE_WQ),           NOT_THERE_EX(MODIFY_WQ),
	NOT_THERE_EX(DESTROY_WQ),          NOT_THERE_EX(CREATE_RWQ_IND_TBL),
	NOT_THERE_EX(DESTROY_RWQ_IND_TBL), NOT_THERE_EX(MODIFY_CQ),
};

#undef NONE
#undef OF
#undef NOT_THERE
#undef NOT_THERE_EX

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void ask_of_nothing(const struct asked *a)
{
	uint64_t answer[ANSWER / 8];
	uint64_t body[ANSWER / 8] = {a->out ? (uintptr_t)answer : 0};
	const uint32_t nothing = NOTHING;

	if (a->handle >= 0)
		memcpy((uint8_t *)body + a->handle, &nothing, sizeof(nothing));
	rule_errno(a->error, request(a->number, body, a->size, a->out),
		   "%s of nothing that there is", a->name);
}

static void about_nothing(void)
{
	for (size_t i = 0; i < LENGTH(commands); i++)
		ask_of_nothing(&commands[i]);
}

/* Those of devices that have more than this provider has calls for. */
static void of_other_devices(void)
{
	uint64_t body[ANSWER / 8] = {0}, answer[ANSWER / 8];

	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		skip("a provider of more than verbs' least");
	for (size_t i = 0; i < LENGTH(lacking); i++)
		ask_of_nothing(&lacking[i]);
	for (size_t i = 0; i < LENGTH(lacking_ex); i++)
		rule_errno(lacking_ex[i].error,
			   request_ex(lacking_ex[i].number, body, lacking_ex[i].size, answer,
				      lacking_ex[i].out),
			   "%s of nothing that there is", lacking_ex[i].name);
}

/* Each has to have room for what the command is, and for its answer. */
static void lengths(void)
{
	uint64_t body[ANSWER / 8] = {0}, answer[ANSWER / 8];

	for (size_t i = 0; i < LENGTH(commands); i++) {
		const struct asked *a = &commands[i];

		if (a->error == EOPNOTSUPP)
			continue;
		body[0] = a->out ? (uintptr_t)answer : 0;
		rule_errno(ENOSPC, request(a->number, body, a->size - 4, a->out),
			   "%s that is too short", a->name);
		if (a->out)
			rule_errno(ENOSPC, request(a->number, body, a->size, a->out - 4),
				   "%s with too little room for its answer", a->name);
	}
}

/* What succeeds, but for the answer, which cannot be given: nothing is left of it. */
static void unanswered(void)
{
	int before = dup(hca.context->cmd_fd), after;

	MUST(before >= 0 && !close(before));
	for (size_t i = 0; i < LENGTH(commands); i++) {
		const struct asked *a = &commands[i];
		uint64_t body[ANSWER / 8] = {8};

		if (a->error || !a->out)
			continue;
		rule_errno(EFAULT, request(a->number, body, a->size, a->out),
			   "%s whose answer nothing takes", a->name);
	}
	after = dup(hca.context->cmd_fd);
	rule(after == before, "which leaves no descriptor");
	MUST(!close(after));
}

static void about_nothing_ex(void)
{
	const struct ib_uverbs_ex_modify_qp modify = {.base = {.qp_handle = NOTHING}};
	struct ib_uverbs_ex_create_qp qp = {.pd_handle = NOTHING, .qp_type = IBV_QPT_RC};
	struct ib_uverbs_ex_create_cq cq = {.cqe = 4, .comp_channel = NOTHING};
	struct ibv_cq *real = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	uint64_t body[8] = {0}, answer[ANSWER / 8];

	rule_errno(ENOENT,
		   request_ex(IB_USER_VERBS_EX_CMD_MODIFY_QP, &modify, sizeof(modify), answer, 8),
		   "EX_MODIFY_QP of nothing that there is");
	MUST(real);
	qp.send_cq_handle = qp.recv_cq_handle = real->handle;
	rule_errno(ENOENT, request_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, &qp, sizeof(qp), answer, 256),
		   "EX_CREATE_QP in a domain that is none");
	qp.comp_mask = 2;
	rule_errno(EINVAL, request_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, &qp, sizeof(qp), answer, 256),
		   "EX_CREATE_QP with a mask that nobody knows");
	rule_errno(EBADF, request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), answer, 256),
		   "EX_CREATE_CQ with a channel that is none");
	cq.comp_channel = -1;
	cq.comp_mask = 1;
	rule_errno(EINVAL, request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), answer, 256),
		   "EX_CREATE_CQ with a mask that nobody knows");
	/* ibv_modify_cq, as most devices answer it; the test of its own is that of CQs. */
	body[0] = NOTHING;
	answer[0] = (uint64_t)request_ex(IB_USER_VERBS_EX_CMD_MODIFY_CQ, body, 16, NULL, 0);
	rule(answer[0] == EOPNOTSUPP || answer[0] == EINVAL,
	     "EX_MODIFY_CQ of nothing that there is");
}

/* Which mistake is told of a region that has several. */
static void first_mistake(void)
{
	struct ib_uverbs_reg_mr_resp keys;
	struct ib_uverbs_reg_mr reg = {.response = (uintptr_t)&keys,
				       .hca_va = 1,
				       .pd_handle = NOTHING,
				       .access_flags = 1u << 19};
	const uint32_t number = IB_USER_VERBS_CMD_REG_MR;

	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "that its address is another than was chosen");
	reg.hca_va = 0;
	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "then that nobody knows its rights");
	reg.access_flags = 0;
	rule_errno(ENOENT, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "then that its domain is none");
	reg.pd_handle = hca.pd->handle;
	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "then that it has no bytes");
	reg.length = 1;
	rule_errno(EFAULT, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "then that there is no memory");
}

/* What is named must be of the type that goes. */
static void of_another_type(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(hca.context);
	struct ibv_cq *cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	struct ib_uverbs_dealloc_pd dealloc;
	struct ib_uverbs_dereg_mr dereg;

	MUST(pd && cq);
	dealloc.pd_handle = cq->handle;
	dereg.mr_handle = pd->handle;
	/* A kernel's handles count per context, so that no two types have the same one. */
	rule_errno(EINVAL, request(IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, sizeof(dealloc), 0),
		   "a CQ is no domain to be given back");
	rule_errno(EINVAL, request(IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), 0),
		   "nor a domain a region");
	rule_errno(0, ibv_destroy_cq(cq), "the CQ is still there");
	rule_errno(0, ibv_dealloc_pd(pd), "and so is the domain");
}

/* As librxe asks for what it has put into the ring to be sent. */
static void doorbell(void)
{
	struct ib_uverbs_post_send_resp answer = {.bad_wr = 1};
	struct ib_uverbs_post_send post = {.response = (uintptr_t)&answer,
					   .qp_handle = NOTHING,
					   .wqe_size = sizeof(struct ib_uverbs_send_wr)};
	const uint32_t number = IB_USER_VERBS_CMD_POST_SEND;
	struct ibv_cq *cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	struct side s = {0};

	MUST(cq);
	rule_errno(ENOENT, request(number, &post, sizeof(post), sizeof(answer)),
		   "nothing is sent by a QP that is none");
	post.qp_handle = cq->handle;
	rule_errno(EINVAL, request(number, &post, sizeof(post), sizeof(answer)), "nor by a CQ");
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	post.qp_handle = s.qp->handle;
	rule_errno(0, request(number, &post, sizeof(post), sizeof(answer)),
		   "a QP that has nothing to send may be asked to");
	rule_errno(0, request(number, &post, sizeof(post), sizeof(answer) + 8),
		   "there may be more room for the answer than it takes");
	post.wqe_size--;
	rule_errno(EINVAL, request(number, &post, sizeof(post), sizeof(answer)),
		   "a request has a size");
}

/* The clock of the device, which ibv_query_rt_values_ex would read. */
static void clock_of_device(void)
{
	struct ib_uverbs_ex_query_device query = {0};
	struct ib_uverbs_ex_query_device_resp answer = {0};
	struct ib_uverbs_ex_create_cq cq = {.cqe = 4, .comp_channel = -1, .flags = 1};
	struct ib_uverbs_ex_create_cq_resp made;
	struct ibv_device_attr_ex ex;
	int rc;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	MUST(!request_ex(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &query, sizeof(query), &answer,
			 sizeof(answer)));
	rule(answer.timestamp_mask == ex.completion_timestamp_mask &&
		     answer.hca_core_clock == ex.hca_core_clock,
	     "the command says of the clock what libibverbs says");
	rule(answer.hca_core_clock || !answer.timestamp_mask, "no clock, no time stamps");
	if (answer.timestamp_mask)
		return;
	rc = request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), &made, sizeof(made));
	rule(rc == EOPNOTSUPP || rc == EINVAL, "and no CQ that has them");
}

/* --- Regions that become other ones. */

static int rereg(const struct ibv_mr *mr, struct ib_uverbs_rereg_mr *change,
		 struct ib_uverbs_rereg_mr_resp *answer)
{
	change->response = (uintptr_t)answer;
	change->mr_handle = mr->handle;
	return request(IB_USER_VERBS_CMD_REREG_MR, change, sizeof(*change), sizeof(*answer));
}

static int move(const struct ibv_mr *mr, const void *address, uint64_t length,
		struct ib_uverbs_rereg_mr_resp *answer)
{
	struct ib_uverbs_rereg_mr change = {.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					    .start = (uintptr_t)address,
					    .length = length,
					    .hca_va = (uintptr_t)address};

	return rereg(mr, &change, answer);
}

static enum ibv_wc_status write_by(struct side pair[2], uint32_t rkey, const uint8_t *to)
{
	struct ibv_sge sge = side_sge(&pair[0], 0, 64);
	struct ibv_send_wr wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	enum ibv_wc_status status;

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	MUST(!post_send(&pair[0], &wr));
	status = next_wc(pair[0].cq).status;
	if (!status && memcmp(to, pair[0].room, 64))
		rule(false, "what was written is there");
	if (status)
		pair_again(pair);
	return status;
}

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static void reregistration(void)
{
	struct ib_uverbs_rereg_mr access = {.flags = IBV_REREG_MR_CHANGE_ACCESS};
	struct ib_uverbs_rereg_mr domain = {.flags = IBV_REREG_MR_CHANGE_PD};
	struct ib_uverbs_rereg_mr_resp keys;
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct side pair[2] = {0};
	struct ibv_mr *mr;
	int rc;

	pair_open(pair, IBV_QPT_RC, 0);
	mr = ibv_reg_mr(hca.pd, pair[1].room, 4096, WRITABLE);
	MUST(mr && other);
	rc = move(mr, pair[1].room + 4096, 4096, &keys);
	if (rc == EOPNOTSUPP)
		skip("regions are not registered anew");
	rule_errno(0, rc, "a region moves to other memory");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_SUCCESS,
	     "which its key leads to");
	rule(write_by(pair, keys.rkey, pair[1].room) == IBV_WC_REM_ACCESS_ERR,
	     "and no more to the old");
	access.access_flags = IBV_ACCESS_REMOTE_READ;
	rule_errno(0, rereg(mr, &access, &keys), "its rights change");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_REM_ACCESS_ERR,
	     "and are in force");
	access.access_flags = WRITABLE;
	MUST(!rereg(mr, &access, &keys));
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_SUCCESS, "and change back");
	domain.pd_handle = other->handle;
	rule_errno(0, rereg(mr, &domain, &keys), "its domain changes");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_REM_ACCESS_ERR,
	     "and it is not the old one's any more");
	rule_errno(EBUSY, ibv_dealloc_pd(other), "the new one holds it");
	rule_errno(0, ibv_dereg_mr(mr), "it is given back");
	rule_errno(0, ibv_dealloc_pd(other), "and the domain after it");
}

static void reregistration_misuse(void)
{
	struct ib_uverbs_rereg_mr access = {.flags = IBV_REREG_MR_CHANGE_ACCESS,
					    .access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ib_uverbs_rereg_mr nothing = {0}, unknown = {.flags = 8}, skewed;
	struct ib_uverbs_rereg_mr domain = {.flags = IBV_REREG_MR_CHANGE_PD, .pd_handle = 0xfffff};
	struct ib_uverbs_rereg_mr_resp keys;
	struct side pair[2] = {0};
	struct ibv_mr *mr, gone;

	pair_open(pair, IBV_QPT_RC, 0);
	mr = ibv_reg_mr(hca.pd, pair[1].room, 4096, WRITABLE);
	MUST(mr);
	if (move(mr, pair[1].room, 4096, &keys) == EOPNOTSUPP)
		skip("regions are not registered anew");
	rule_errno(EINVAL, rereg(mr, &nothing, &keys), "what changes nothing is refused");
	rule_errno(EOPNOTSUPP, rereg(mr, &unknown, &keys), "a change that nobody knows is refused");
	skewed = (struct ib_uverbs_rereg_mr){.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					     .start = (uintptr_t)pair[1].room,
					     .length = 4096,
					     .hca_va = (uintptr_t)pair[1].room + 1};
	rule_errno(EINVAL, rereg(mr, &skewed, &keys),
		   "address and chosen address have one offset in the page");
	rule_errno(EINVAL, move(mr, pair[1].room, 0, &keys), "a region has a byte at least");
	rule_errno(EFAULT, move(mr, (void *)4096, 4096, &keys), "new memory is mapped");
	rule_errno(EINVAL, rereg(mr, &access, &keys), "remote writing needs local writing");
	rule_errno(ENOENT, rereg(mr, &domain, &keys), "the new domain is one");
	gone = *mr;
	gone.handle = 0xfffff;
	rule_errno(ENOENT, move(&gone, pair[1].room, 4096, &keys), "the region is one");
	rule(write_by(pair, mr->rkey, pair[1].room) == IBV_WC_SUCCESS,
	     "after all that it is what it was");
}

const struct test command_tests[] = {
	{"framing", framing},
	{"framing_ex", framing_ex},
	{"lengths", lengths},
	{"unanswered", unanswered},
	{"about_nothing", about_nothing},
	{"about_nothing_ex", about_nothing_ex},
	{"of_other_devices", of_other_devices},
	{"first_mistake", first_mistake},
	{"of_another_type", of_another_type},
	{"doorbell", doorbell},
	{"clock", clock_of_device},
	{"reregistration", reregistration},
	{"reregistration_misuse", reregistration_misuse},
	{NULL, NULL},
};
