/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagrams by rdma_cm: where a service is, and groups. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

#define UDP_QKEY 0x01234567

static void lookup(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_UDP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(SIDR_REQ_DATA + 1);
	struct rdma_cm_event *event;

	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)), "181 bytes are too many");
	param.private_data_len = SIDR_REQ_DATA;
	rule_errno(0, cm_errno(rdma_connect(client, &param)), "a question takes 180");
	event = cm_event(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rule(event->param.ud.private_data_len == SIDR_REQ_DATA &&
		     !memcmp(event->param.ud.private_data, cm_data(), SIDR_REQ_DATA),
	     "the server gets all of it");
	MUST(!rdma_ack_cm_event(event));
	cm_make_qp(server);
	param = cm_param(SIDR_REP_DATA);
	param.qp_num = server->qp->qp_num;
	rule_errno(0, cm_errno(rdma_accept(server, &param)), "an answer takes 136");
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(event->param.ud.qp_num == server->qp->qp_num, "it says the queue pair");
	rule(event->param.ud.qkey == UDP_QKEY, "the Q_Key of all such");
	rule(event->param.ud.ah_attr.is_global && event->param.ud.ah_attr.port_num == PORT,
	     "the way there");
	rule(event->param.ud.private_data_len >= SIDR_REP_DATA &&
		     !memcmp(event->param.ud.private_data, cm_data(), SIDR_REP_DATA),
	     "and the data");
	MUST(!rdma_ack_cm_event(event));
	rule(cm_quiet(mine) && cm_quiet(theirs), "nothing else comes of it");
}

static void too_much(void)
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
	rule_errno(EINVAL, cm_errno(rdma_accept(server, &param)), "137 are too many for an answer");
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == SIDR_REJECTED, "and refuse the question");
}

static void refusal(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_UDP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *late = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	rule_errno(0, cm_errno(rdma_reject(cm_request(theirs), cm_data(), 20)),
		   "a server may refuse");
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == SIDR_REJECTED,
	     "of which the client hears");
	MUST(!rdma_destroy_id(listener));
	MUST(!rdma_connect(late, &param));
	rule(cm_await(mine, RDMA_CM_EVENT_UNREACHABLE) == 1, "where nobody listens is no service");
}

static union cm_addr group(const char *address)
{
	union cm_addr addr = {.v4 = {.sin_family = AF_INET}};

	MUST(inet_pton(AF_INET, address, &addr.v4.sin_addr) == 1);
	return addr;
}

static void groups(void)
{
	union cm_addr own = cm_own(0), one = group("239.1.7.7"), none = group("192.0.2.1");
	struct rdma_event_channel *channel = cm_open();
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_UDP), *tcp;
	struct rdma_cm_event *event;
	int context;

	rule_errno(EINVAL, cm_errno(rdma_join_multicast(id, &one.any, &context)),
		   "without a device there are no groups");
	MUST(!rdma_bind_addr(id, &own.any));
	cm_make_qp(id);
	rule_errno(0, cm_errno(rdma_join_multicast(id, &one.any, &context)), "a group is joined");
	event = cm_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	rule(event->param.ud.private_data == &context, "the event says for what");
	rule(event->param.ud.qp_num == 0xffffff && event->param.ud.qkey == UDP_QKEY,
	     "and how to send there");
	MUST(!rdma_ack_cm_event(event));
	rule_errno(0, cm_errno(rdma_leave_multicast(id, &one.any)), "and left");
	rule_errno(EADDRNOTAVAIL, cm_errno(rdma_leave_multicast(id, &one.any)), "once");
	tcp = cm_create(channel, RDMA_PS_TCP);
	MUST(!rdma_bind_addr(tcp, &own.any));
	rule_errno(EINVAL, cm_errno(rdma_join_multicast(tcp, &one.any, &context)),
		   "groups are for datagrams");
	rule(cm_quiet(channel), "no other event comes");
	rule_errno(EINVAL, cm_errno(rdma_join_multicast(id, &none.any, &context)),
		   "an address of one is no group");
}

const struct test cm_ud_tests[] = {
	{"lookup", lookup}, {"too_much", too_much}, {"refusal", refusal},
	{"groups", groups}, {NULL, NULL},
};
