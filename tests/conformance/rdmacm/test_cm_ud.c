/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UD by rdma_cm: service ID resolution (SIDR) and multicast groups. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

#define UDP_QKEY 0x01234567

static void test_sidr_resolves_qpn_and_qkey(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_UDP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(SIDR_REQ_DATA + 1);
	struct rdma_cm_event *event;

	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)),
		   "a SIDR request with 181 bytes of private data is refused");
	param.private_data_len = SIDR_REQ_DATA;
	rule_errno(0, cm_errno(rdma_connect(client, &param)),
		   "a SIDR request with 180 bytes of private data is accepted");
	event = cm_event(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rule(event->param.ud.private_data_len == SIDR_REQ_DATA &&
		     !memcmp(event->param.ud.private_data, cm_data(), SIDR_REQ_DATA),
	     "the request's event has all private data");
	MUST(!rdma_ack_cm_event(event));
	cm_make_qp(server);
	param = cm_param(SIDR_REP_DATA);
	param.qp_num = server->qp->qp_num;
	rule_errno(0, cm_errno(rdma_accept(server, &param)),
		   "a SIDR reply with 136 bytes of private data is accepted");
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(event->param.ud.qp_num == server->qp->qp_num,
	     "the client's event has the server's QPN");
	rule(event->param.ud.qkey == UDP_QKEY,
	     "the client's event has the Q_Key of the UDP port space");
	rule(event->param.ud.ah_attr.is_global && event->param.ud.ah_attr.port_num == PORT,
	     "the client's event has the address of the server");
	rule(event->param.ud.private_data_len >= SIDR_REP_DATA &&
		     !memcmp(event->param.ud.private_data, cm_data(), SIDR_REP_DATA),
	     "the client's event has the reply's private data");
	MUST(!rdma_ack_cm_event(event));
	rule(cm_quiet(mine) && cm_quiet(theirs), "no further event arrives");
}

static void test_too_long_private_data_is_refused(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_UDP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	cm_make_qp(server);
	param = cm_param(SIDR_REP_DATA + 1);
	param.qp_num = server->qp->qp_num;
	rule_errno(EINVAL, cm_errno(rdma_accept(server, &param)),
		   "a SIDR reply with 137 bytes of private data is refused");
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == SIDR_REJECTED,
	     "a refused reply rejects the request");
}

static void test_refused_sidr_raises_unreachable(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_UDP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *late = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	rule_errno(0, cm_errno(rdma_reject(cm_request(theirs), cm_data(), 20)),
		   "a server can reject a SIDR request");
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == SIDR_REJECTED,
	     "a rejected SIDR request raises UNREACHABLE");
	MUST(!rdma_destroy_id(listener));
	MUST(!rdma_connect(late, &param));
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == 1,
	     "a SIDR request without a listener raises UNREACHABLE");
}

static union cm_addr group(const char *address)
{
	union cm_addr addr = {.v4 = {.sin_family = AF_INET}};

	MUST(inet_pton(AF_INET, address, &addr.v4.sin_addr) == 1);
	return addr;
}

static void test_multicast_groups(void)
{
	union cm_addr own = cm_own(0), one = group("239.1.7.7"), none = group("192.0.2.1");
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_UDP), *tcp;
	struct rdma_cm_event *event;
	int context;

	if (!hca.attr.max_mcast_grp)
		hca_lacks("multicast");
	rule_errno(EINVAL, cm_errno(rdma_join_multicast(id, &one.any, &context)),
		   "an ID without a device cannot join a group");
	MUST(!rdma_bind_addr(id, &own.any));
	cm_make_qp(id);
	rule_errno(0, cm_errno(rdma_join_multicast(id, &one.any, &context)),
		   "an ID can join a group");
	event = cm_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	rule(event->param.ud.private_data == &context,
	     "the event MULTICAST_JOIN has the caller's context");
	rule(event->param.ud.qp_num == 0xffffff && event->param.ud.qkey == UDP_QKEY,
	     "the event MULTICAST_JOIN has QPN and Q_Key of the group");
	MUST(!rdma_ack_cm_event(event));
	rule_errno(0, cm_errno(rdma_leave_multicast(id, &one.any)), "an ID can leave a group");
	rule_errno(EADDRNOTAVAIL, cm_errno(rdma_leave_multicast(id, &one.any)),
		   "a group can be left only once");
	tcp = cm_create(channel, RDMA_PS_TCP);
	MUST(!rdma_bind_addr(tcp, &own.any));
	rule_errno(EINVAL, cm_errno(rdma_join_multicast(tcp, &one.any, &context)),
		   "an ID of the TCP port space cannot join a group");
	rule(cm_quiet(channel), "no further event arrives");
	rule_errno(EINVAL, cm_errno(rdma_join_multicast(id, &none.any, &context)),
		   "a unicast address cannot be joined");
}

/* A member that only sends attaches no QP. */
static void test_membership_of_senders(void)
{
	union cm_addr own = cm_own(0), one = group("239.1.7.8");
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_UDP);
	struct rdma_cm_join_mc_attr_ex join = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
					       .addr = &one.any};
	union ibv_gid gid;
	struct rdma_cm_event *event;

	if (!hca.attr.max_mcast_grp)
		hca_lacks("multicast");
	MUST(!rdma_bind_addr(id, &own.any));
	cm_make_qp(id);
	rule_errno(0, cm_errno(rdma_join_multicast_ex(id, &join, &join)),
		   "an ID can join a group as a sender");
	event = cm_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	rule(event->param.ud.private_data == &join && event->param.ud.qp_num == 0xffffff,
	     "the event MULTICAST_JOIN has the caller's context and the QPN");
	gid = event->param.ud.ah_attr.grh.dgid;
	MUST(!rdma_ack_cm_event(event));
	rule_errno(EINVAL, ibv_detach_mcast(id->qp, &gid, 0), "the sender's QP is not attached");
	rule_errno(0, cm_errno(rdma_leave_multicast(id, &one.any)), "a sender can leave");
	join.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	rule_errno(EINVAL, cm_errno(rdma_join_multicast_ex(id, &join, &join)),
		   "another kind of membership is refused");
}

const struct test cm_ud_tests[] = {
	{"lookup", test_sidr_resolves_qpn_and_qkey},
	{"too_much", test_too_long_private_data_is_refused},
	{"refusal", test_refused_sidr_raises_unreachable},
	{"groups", test_multicast_groups},
	{"senders", test_membership_of_senders},
	{NULL, NULL},
};
