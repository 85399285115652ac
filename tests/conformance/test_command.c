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
	rule_errno(EINVAL, rereg(mr, &domain, &keys), "the new domain is one");
	gone = *mr;
	gone.handle = 0xfffff;
	rule_errno(EINVAL, move(&gone, pair[1].room, 4096, &keys), "the region is one");
	rule(write_by(pair, mr->rkey, pair[1].room) == IBV_WC_SUCCESS,
	     "after all that it is what it was");
}

const struct test command_tests[] = {
	{"framing", framing},
	{"framing_ex", framing_ex},
	{"clock", clock_of_device},
	{"reregistration", reregistration},
	{"reregistration_misuse", reregistration_misuse},
	{NULL, NULL},
};
