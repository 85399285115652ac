/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * uverbs commands that libibverbs and providers never send: wrong lengths, unknown handles, short
 * buffers. Uses the write() interface (rdma/ib_user_verbs.h), which all kernels still have.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define WORDS 64 /* size of the request buffer in 32-bit words */

/* Sends a request with its header; returns the errno value. out: size of the response buffer in
 * bytes. */
static int request_at(int fd, uint32_t command, const void *body, size_t size, size_t out)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t body[4 * WORDS];
	} whole = {.hdr = {.command = command,
			   .in_words = (uint16_t)((sizeof(whole.hdr) + size) / 4),
			   .out_words = (uint16_t)(out / 4)}};

	MUST(size <= sizeof(whole.body));
	memcpy(whole.body, body, size);
	if (write(fd, &whole, sizeof(whole.hdr) + size) < 0)
		return errno;
	return 0;
}

static int request(uint32_t command, const void *body, size_t size, size_t out)
{
	return request_at(hca.context->cmd_fd, command, body, size, out);
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

static void test_header_is_checked(void)
{
	struct ib_uverbs_query_port_resp answer;
	struct ib_uverbs_query_port query = {.response = (uintptr_t)&answer, .port_num = PORT};
	const uint32_t number = IB_USER_VERBS_CMD_QUERY_PORT;
	struct ib_uverbs_cmd_hdr lone = {.command = number, .in_words = 2};
	struct ib_uverbs_cmd_hdr lies = {.command = number, .in_words = 40, .out_words = 40};

	rule_errno(0, request(number, &query, sizeof(query), sizeof(answer)),
		   "a valid command succeeds");
	rule(answer.gid_tbl_len == (uint32_t)hca.port.gid_tbl_len &&
		     answer.state == IBV_PORT_ACTIVE,
	     "a command's response equals libibverbs' attributes");
	rule_errno(ENOSPC, request(number, &query, sizeof(query) - 4, sizeof(answer)),
		   "a request that is too short is refused");
	rule_errno(ENOSPC, request(number, &query, sizeof(query), sizeof(answer) - 4),
		   "a response buffer that is too short is refused");
	rule(write(hca.context->cmd_fd, &lone, sizeof(lone)) < 0 && errno == ENOSPC,
	     "a header without a request is refused");
	rule(write(hca.context->cmd_fd, &lies, sizeof(lies)) < 0 && errno == EINVAL,
	     "a request of another length than its header's is refused");
	rule(write(hca.context->cmd_fd, &lies, 3) < 0 && errno == EINVAL,
	     "a part of a header is refused");
	rule_errno(EOPNOTSUPP, request(77, &query, sizeof(query), sizeof(answer)),
		   "an unknown command is refused");
	rule_errno(EINVAL, request(number | 1u << 28, &query, sizeof(query), sizeof(answer)),
		   "unknown command flags are refused");
	query.response = 8;
	rule_errno(EFAULT, request(number, &query, sizeof(query), sizeof(answer)),
		   "an unmapped response buffer is an error");
}

static void test_extended_header_is_checked(void)
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
		   "a valid extended command succeeds");
	rule(answer.response_length >= least && answer.response_length <= sizeof(answer),
	     "the response has its own length");
	rule_errno(0, request_ex(number, &longer, sizeof(longer), &answer, sizeof(answer)),
		   "unknown request bytes may be zero");
	longer.more = 1;
	rule_errno(EOPNOTSUPP, request_ex(number, &longer, sizeof(longer), &answer, sizeof(answer)),
		   "unknown request bytes other than zero are refused");
	query.comp_mask = 1;
	rule_errno(EINVAL, request_ex(number, &query, sizeof(query), &answer, sizeof(answer)),
		   "an unknown mask is refused");
	query.comp_mask = 0;
	rule_errno(EINVAL, request_ex(number, &query, sizeof(query), NULL, sizeof(answer)),
		   "a response without an address is refused");
	rule_errno(EOPNOTSUPP, request_ex(60, &query, sizeof(query), &answer, sizeof(answer)),
		   "an unknown extended command is refused");
}

/* --- Every command that librxe and libibverbs can send, with an unknown handle */

#define NOTHING 0xfffff /* an unknown handle */
#define ANSWER  512     /* bytes, enough for each response */

struct asked {
	uint32_t number;
	const char *name;
	size_t size, out; /* bytes of request and response */
	int handle;       /* offset of the handle in the request; -1: no handle */
	int error;        /* expected errno value: the kernel's first failing check */
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
	NONE(GET_CONTEXT, get_context, SIZE(get_context_resp),
	     EINVAL), /* the file has a context already */
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
	/* Commands that no kernel implements. */
	NOT_THERE(MODIFY_AH),
	NOT_THERE(QUERY_AH),
	NOT_THERE(REG_SMR),
	NOT_THERE(QUERY_MR),
	NOT_THERE(BIND_MW),
	NOT_THERE(PEEK_CQ),
};

/* Commands of libibverbs for other devices; librxe sends none of them. */
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

static void check_unknown_handle(const struct asked *a)
{
	uint64_t answer[ANSWER / 8];
	uint64_t body[ANSWER / 8] = {a->out ? (uintptr_t)answer : 0};
	const uint32_t nothing = NOTHING;

	if (a->handle >= 0)
		memcpy((uint8_t *)body + a->handle, &nothing, sizeof(nothing));
	rule_errno(a->error, request(a->number, body, a->size, a->out),
		   "%s with an unknown handle is refused", a->name);
}

static void test_unknown_handles_are_refused(void)
{
	for (size_t i = 0; i < LENGTH(commands); i++)
		check_unknown_handle(&commands[i]);
}

/* Commands for features that other devices have and this provider does not. */
static void test_commands_of_other_devices_are_refused(void)
{
	uint64_t body[ANSWER / 8] = {0}, answer[ANSWER / 8];

	if (strstr(ibv_get_device_name(hca.context->device), "mlx"))
		skip("a provider of more than verbs' least");
	for (size_t i = 0; i < LENGTH(lacking); i++)
		check_unknown_handle(&lacking[i]);
	for (size_t i = 0; i < LENGTH(lacking_ex); i++)
		rule_errno(lacking_ex[i].error,
			   request_ex(lacking_ex[i].number, body, lacking_ex[i].size, answer,
				      lacking_ex[i].out),
			   "%s with an unknown handle is refused", lacking_ex[i].name);
}

/* Each command refuses a request or a response buffer that is too short. */
static void test_short_requests_and_buffers_are_refused(void)
{
	uint64_t body[ANSWER / 8] = {0}, answer[ANSWER / 8];

	for (size_t i = 0; i < LENGTH(commands); i++) {
		const struct asked *a = &commands[i];

		if (a->error == EOPNOTSUPP)
			continue;
		body[0] = a->out ? (uintptr_t)answer : 0;
		rule_errno(ENOSPC, request(a->number, body, a->size - 4, a->out),
			   "%s with a short request is refused", a->name);
		if (a->out)
			rule_errno(ENOSPC, request(a->number, body, a->size, a->out - 4),
				   "%s with a short response buffer is refused", a->name);
	}
}

/* A command whose response cannot be written fails and leaves no object behind. */
static void test_unwritable_response_leaves_no_object(void)
{
	int before = dup(hca.context->cmd_fd), after;

	MUST(before >= 0 && !close(before));
	for (size_t i = 0; i < LENGTH(commands); i++) {
		const struct asked *a = &commands[i];
		uint64_t body[ANSWER / 8] = {8};

		if (a->error || !a->out)
			continue;
		rule_errno(EFAULT, request(a->number, body, a->size, a->out),
			   "%s with an unmapped response buffer is refused", a->name);
	}
	after = dup(hca.context->cmd_fd);
	rule(after == before, "a command without a response leaves no descriptor");
	MUST(!close(after));
}

static void test_commands_need_a_context(void)
{
	struct ib_uverbs_create_comp_channel_resp answer;
	struct ib_uverbs_create_comp_channel channel = {.response = (uintptr_t)&answer};
	struct ib_uverbs_query_port query = {.response = (uintptr_t)&answer, .port_num = PORT};
	char path[sizeof(hca.context->device->dev_name) + 32];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", hca.context->device->dev_name);
	fd = open(path, O_RDWR);
	MUST(fd >= 0);
	rule_errno(EINVAL,
		   request_at(fd, IB_USER_VERBS_CMD_QUERY_PORT, &query, sizeof(query), ANSWER),
		   "QUERY_PORT before GET_CONTEXT is refused");
	rule_errno(EINVAL,
		   request_at(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &channel, sizeof(channel),
			      sizeof(answer)),
		   "CREATE_COMP_CHANNEL before GET_CONTEXT is refused");
	MUST(!close(fd));
}

static void test_extended_commands_refuse_unknown_handles(void)
{
	const struct ib_uverbs_ex_modify_qp modify = {.base = {.qp_handle = NOTHING}};
	struct ib_uverbs_ex_create_qp qp = {.pd_handle = NOTHING, .qp_type = IBV_QPT_RC};
	struct ib_uverbs_ex_create_cq cq = {.cqe = 4, .comp_channel = NOTHING};
	struct ibv_cq *real = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	uint64_t body[8] = {0}, answer[ANSWER / 8];

	rule_errno(ENOENT,
		   request_ex(IB_USER_VERBS_EX_CMD_MODIFY_QP, &modify, sizeof(modify), answer, 8),
		   "EX_MODIFY_QP with an unknown handle is refused");
	rule_errno(ENOENT,
		   request_ex(IB_USER_VERBS_EX_CMD_MODIFY_QP, &modify, sizeof(modify), NULL, 0),
		   "EX_MODIFY_QP needs no response (verify_hdr)");
	MUST(real);
	qp.send_cq_handle = qp.recv_cq_handle = real->handle;
	rule_errno(ENOENT, request_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, &qp, sizeof(qp), answer, 256),
		   "EX_CREATE_QP with an unknown PD is refused");
	qp.comp_mask = 2;
	rule_errno(EINVAL, request_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, &qp, sizeof(qp), answer, 256),
		   "EX_CREATE_QP with an unknown mask is refused");
	rule_errno(EBADF, request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), answer, 256),
		   "EX_CREATE_CQ with an unknown channel is refused");
	cq.comp_channel = -1;
	cq.comp_mask = 1;
	rule_errno(EINVAL, request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), answer, 256),
		   "EX_CREATE_CQ with an unknown mask is refused");
	/* ibv_modify_cq, as most devices answer it; test_cq.c tests its success. */
	body[0] = NOTHING;
	answer[0] = (uint64_t)request_ex(IB_USER_VERBS_EX_CMD_MODIFY_CQ, body, 16, NULL, 0);
	rule(answer[0] == EOPNOTSUPP || answer[0] == EINVAL,
	     "EX_MODIFY_CQ with an unknown handle is refused");
}

/* The errno value of a registration with several mistakes. */
static void test_errno_of_the_first_mistake(void)
{
	struct ib_uverbs_reg_mr_resp keys;
	struct ib_uverbs_reg_mr reg = {.response = (uintptr_t)&keys,
				       .hca_va = 1,
				       .pd_handle = NOTHING,
				       .access_flags = 1u << 19};
	const uint32_t number = IB_USER_VERBS_CMD_REG_MR;

	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "the first error of REG_MR is an IOVA with another page offset");
	reg.hca_va = 0;
	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "the second error of REG_MR is unknown access rights");
	reg.access_flags = 0;
	rule_errno(ENOENT, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "the third error of REG_MR is an unknown PD");
	reg.pd_handle = hca.pd->handle;
	rule_errno(EINVAL, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "the fourth error of REG_MR is length 0");
	reg.length = 1;
	rule_errno(EFAULT, request(number, &reg, sizeof(reg), sizeof(keys)),
		   "the fifth error of REG_MR is unmapped memory");
}

/* A handle must name an object of the type that the command destroys. */
static void test_handle_of_another_type_is_refused(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(hca.context);
	struct ibv_cq *cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0);
	struct ib_uverbs_dealloc_pd dealloc;
	struct ib_uverbs_dereg_mr dereg;

	MUST(pd && cq);
	dealloc.pd_handle = cq->handle;
	dereg.mr_handle = pd->handle;
	/* Linux numbers handles per context, so objects of two types never share a handle. */
	rule_errno(EINVAL, request(IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, sizeof(dealloc), 0),
		   "DEALLOC_PD with a CQ's handle is refused");
	rule_errno(EINVAL, request(IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), 0),
		   "DEREG_MR with a PD's handle is refused");
	rule_errno(0, ibv_destroy_cq(cq), "the CQ survives DEALLOC_PD with its handle");
	rule_errno(0, ibv_dealloc_pd(pd), "the PD survives DEREG_MR with its handle");
}

/* The command by which librxe rings the doorbell of its send queue. */
static void test_doorbell(void)
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
		   "POST_SEND with an unknown handle is refused");
	post.qp_handle = cq->handle;
	rule_errno(EINVAL, request(number, &post, sizeof(post), sizeof(answer)),
		   "POST_SEND with a CQ's handle is refused");
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	post.qp_handle = s.qp->handle;
	rule_errno(0, request(number, &post, sizeof(post), sizeof(answer)),
		   "POST_SEND on an empty queue succeeds");
	rule_errno(0, request(number, &post, sizeof(post), sizeof(answer) + 8),
		   "POST_SEND with a longer response buffer succeeds");
	post.wqe_size--;
	rule_errno(EINVAL, request(number, &post, sizeof(post), sizeof(answer)),
		   "POST_SEND with a WQE size of 0 is refused");
}

/* The device's clock, which ibv_query_rt_values_ex reads. */
static void test_device_clock(void)
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
	     "the command's clock equals libibverbs'");
	rule(answer.hca_core_clock || !answer.timestamp_mask,
	     "a device without a clock has no time stamps");
	if (answer.timestamp_mask)
		return;
	rc = request_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &cq, sizeof(cq), &made, sizeof(made));
	rule(rc == EOPNOTSUPP || rc == EINVAL,
	     "a CQ with time stamps is refused without time stamps");
}

/* --- Reregistration */

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
		rule(false, "the written bytes are in memory");
	if (status)
		pair_again(pair);
	return status;
}

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static void test_reregistration(void)
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
	rule_errno(0, rc, "a region can move to other memory");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_SUCCESS,
	     "after the move the key reaches the new memory");
	rule(write_by(pair, keys.rkey, pair[1].room) == IBV_WC_REM_ACCESS_ERR,
	     "after the move the key does not reach the old memory");
	access.access_flags = IBV_ACCESS_REMOTE_READ;
	rule_errno(0, rereg(mr, &access, &keys), "the access rights of a region can change");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_REM_ACCESS_ERR,
	     "the changed access rights apply");
	access.access_flags = WRITABLE;
	MUST(!rereg(mr, &access, &keys));
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_SUCCESS,
	     "the access rights can change back");
	domain.pd_handle = other->handle;
	rule_errno(0, rereg(mr, &domain, &keys), "the PD of a region can change");
	rule(write_by(pair, keys.rkey, pair[1].room + 4096) == IBV_WC_REM_ACCESS_ERR,
	     "a QP of the old PD cannot use the region");
	rule_errno(EBUSY, ibv_dealloc_pd(other),
		   "the new PD cannot be deallocated with the region");
	rule_errno(0, ibv_dereg_mr(mr), "the region can be deregistered");
	rule_errno(0, ibv_dealloc_pd(other), "the PD can be deallocated after its region");
}

static void test_reregistration_of_zero_based_region(void)
{
	struct ib_uverbs_rereg_mr access = {.flags = IBV_REREG_MR_CHANGE_ACCESS};
	struct ib_uverbs_rereg_mr_resp keys;
	_Alignas(4096) static char room[8192];
	struct ibv_mr *mr;
	int rc;

	mr = ibv_reg_mr(hca.pd, room + 16, 4096, WRITABLE | IBV_ACCESS_ZERO_BASED);
	rule(mr, "a zero-based region within a page can be registered");
	MUST(mr);
	access.access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
	rc = rereg(mr, &access, &keys);
	if (rc == EOPNOTSUPP)
		skip("regions are not registered anew");
	rule_errno(0, rc, "the access rights of a zero-based region can change");
	MUST(!ibv_dereg_mr(mr));
}

static void test_misuse_of_reregistration_is_refused(void)
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
	rule_errno(EINVAL, rereg(mr, &nothing, &keys),
		   "a reregistration without changes is refused");
	rule_errno(EOPNOTSUPP, rereg(mr, &unknown, &keys), "an unknown change is refused");
	skewed = (struct ib_uverbs_rereg_mr){.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					     .start = (uintptr_t)pair[1].room,
					     .length = 4096,
					     .hca_va = (uintptr_t)pair[1].room + 1};
	rule_errno(EINVAL, rereg(mr, &skewed, &keys),
		   "an IOVA with another page offset is refused");
	rule_errno(EINVAL, move(mr, pair[1].room, 0, &keys), "a region of length 0 is refused");
	rule_errno(EFAULT, move(mr, (void *)4096, 4096, &keys),
		   "a move to unmapped memory is refused");
	rule_errno(EINVAL, rereg(mr, &access, &keys),
		   "remote write access without local write access is refused");
	rule_errno(ENOENT, rereg(mr, &domain, &keys), "an unknown PD is refused");
	gone = *mr;
	gone.handle = 0xfffff;
	rule_errno(ENOENT, move(&gone, pair[1].room, 4096, &keys), "an unknown region is refused");
	rule(write_by(pair, mr->rkey, pair[1].room) == IBV_WC_SUCCESS,
	     "refused changes leave the region unchanged");
}

const struct test command_tests[] = {
	{"framing", test_header_is_checked},
	{"framing_ex", test_extended_header_is_checked},
	{"lengths", test_short_requests_and_buffers_are_refused},
	{"unanswered", test_unwritable_response_leaves_no_object},
	{"without_context", test_commands_need_a_context},
	{"about_nothing", test_unknown_handles_are_refused},
	{"about_nothing_ex", test_extended_commands_refuse_unknown_handles},
	{"of_other_devices", test_commands_of_other_devices_are_refused},
	{"first_mistake", test_errno_of_the_first_mistake},
	{"of_another_type", test_handle_of_another_type_is_refused},
	{"doorbell", test_doorbell},
	{"clock", test_device_clock},
	{"reregistration", test_reregistration},
	{"reregistration_zero_based", test_reregistration_of_zero_based_region},
	{"reregistration_misuse", test_misuse_of_reregistration_is_refused},
	{NULL, NULL},
};
