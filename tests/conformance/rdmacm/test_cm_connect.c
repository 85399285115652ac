/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections by rdma_cm: establishment, private data, refusal and end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

#define MESSAGE 64

/* --- Establishment */

/* Sends a message from one end to the other, which receives it by its SRQ, if it has one. */
static bool transfers(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	static uint8_t in[MESSAGE], out[MESSAGE];
	struct ibv_mr *in_mr = rdma_reg_msgs(to, in, sizeof(in)),
		      *out_mr = rdma_reg_msgs(from, out, sizeof(out));
	struct ibv_wc wc;
	bool same;

	MUST(in_mr && out_mr);
	memcpy(out, cm_data(), sizeof(out));
	memset(in, 0, sizeof(in));
	MUST(!rdma_post_recv(to, NULL, in, sizeof(in), in_mr));
	MUST(!rdma_post_send(from, NULL, out, sizeof(out), out_mr, 0));
	MUST(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	MUST(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	same = !memcmp(in, out, sizeof(in));
	MUST(!rdma_dereg_mr(in_mr) && !rdma_dereg_mr(out_mr));
	return same;
}

static bool has_data(const struct rdma_conn_param *conn, uint8_t len)
{
	return conn->private_data_len >= len && !memcmp(conn->private_data, cm_data(), len);
}

static void test_connection_carries_private_data_and_messages(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(REQ_DATA);
	struct rdma_cm_event *event;

	rule_errno(0, cm_errno(rdma_connect(client, &param)),
		   "a request with 56 bytes of private data is accepted");
	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)),
		   "a second connect on an ID is refused");
	event = cm_event(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rule(event->listen_id == listener, "the request's event names the listener");
	rule(has_data(&event->param.conn, REQ_DATA), "the request's event has the private data");
	rule(event->param.conn.private_data_len == REQ_DATA,
	     "the request's event has 56 bytes of private data");
	rule(event->param.conn.qp_num == client->qp->qp_num,
	     "the request's event has the client's QPN");
	rule(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 3,
	     "the request's event has the depths from the server's view");
	rule(event->param.conn.retry_count == 5 && event->param.conn.rnr_retry_count == 4,
	     "the request's event has the retry counts");
	rule(rdma_get_dst_port(server) == rdma_get_src_port(client) &&
		     rdma_get_src_port(server) == rdma_get_src_port(listener),
	     "both ends have each other's ports");
	MUST(!rdma_ack_cm_event(event));
	cm_make_qp(server);
	param = cm_param(REP_DATA);
	rule_errno(0, cm_errno(rdma_accept(server, &param)),
		   "a reply with 196 bytes of private data is accepted");
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(has_data(&event->param.conn, REP_DATA),
	     "the client's event has the reply's private data");
	MUST(!rdma_ack_cm_event(event));
	rule(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED), "the server gets the event ESTABLISHED");
	rule(transfers(client, server) && transfers(server, client),
	     "messages pass in both directions");
	rule(cm_quiet(mine) && cm_quiet(theirs), "no further event arrives");
}

/* A program that creates its QP without librdmacm executes the transitions itself. */
static void test_program_can_modify_its_own_qp(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct ibv_qp *qp = client->qp;
	struct rdma_conn_param param = cm_param(0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	uint8_t timeout = 11, tos = 0x68;
	int mask;

	client->qp = NULL;
	param.qp_num = qp->qp_num;
	MUST(!rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	MUST(!rdma_init_qp_attr(client, &attr, &mask));
	rule(!(mask & (IBV_QP_DEST_QPN | IBV_QP_AV)),
	     "before a connect the attributes have no destination");
	MUST(!rdma_connect(client, &param));
	rule_errno(EINVAL, cm_errno(rdma_init_qp_attr(client, &attr, &mask)),
		   "RTR attributes are refused before the response");
	server = cm_request(theirs);
	MUST(!rdma_set_option(server, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	cm_make_qp(server);
	param = cm_param(0);
	MUST(!rdma_accept(server, &param));
	rule(!cm_await(mine, RDMA_CM_EVENT_CONNECT_RESPONSE),
	     "a client without QP gets the event CONNECT_RESPONSE");
	MUST(!rdma_init_qp_attr(client, &attr, &mask));
	rule(attr.dest_qp_num == server->qp->qp_num && attr.ah_attr.is_global &&
		     mask & IBV_QP_DEST_QPN && mask & IBV_QP_AV,
	     "after the response the attributes have the destination");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	MUST(!rdma_init_qp_attr(client, &attr, &mask));
	rule(attr.timeout == timeout, "the attributes have the requested timeout");
	rule(attr.retry_cnt == 5, "the attributes have the retry count");
	rule(cm_quiet(theirs), "the server is not established before rdma_establish");
	rule_errno(0, cm_errno(rdma_establish(client)), "rdma_establish succeeds");
	rule(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED),
	     "rdma_establish raises the server's event ESTABLISHED");
	client->qp = qp;
}

/* As rdma-core's cmtime, which measures connections whose queue pairs are numbers only. */
static void test_connection_of_numbers_without_queue_pairs(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_event *event;

	rdma_destroy_qp(client);
	param.qp_num = 1000;
	rule_errno(0, cm_errno(rdma_connect(client, &param)),
		   "a request names a number that is no queue pair's");
	event = cm_event(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rule(event->param.conn.qp_num == 1000, "the request's event has that number");
	MUST(!rdma_ack_cm_event(event));
	param = cm_param(0);
	param.qp_num = 1001;
	rule_errno(0, cm_errno(rdma_accept(server, &param)),
		   "a reply names a number that is no queue pair's");
	event = cm_event(mine, RDMA_CM_EVENT_CONNECT_RESPONSE);
	rule(event->param.conn.qp_num == 1001, "the response's event has that number");
	MUST(!rdma_ack_cm_event(event));
	rule_errno(0, cm_errno(rdma_establish(client)), "rdma_establish succeeds");
	rule(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED), "the server gets the event ESTABLISHED");
}

/* Options of enhanced connection establishment are for programs with QPs of their own. */
static bool has_ece(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = {0};

	return !rdma_get_remote_ece(id, &ece) && ece.vendor_id == vendor && ece.options == options;
}

static void test_ece_options_reach_the_peer(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct ibv_ece ask = {.vendor_id = 0x1234, .options = 5},
		       answer = {.vendor_id = 0xfedcba, .options = 0x80000006};
	struct rdma_conn_param param = cm_param(0);

	rule_errno(EINVAL, cm_errno(rdma_set_local_ece(client, &ask)),
		   "an ID with a QP takes no options");
	rdma_destroy_qp(client);
	MUST(!rdma_set_local_ece(client, &ask));
	param.qp_num = 1000;
	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	rule(has_ece(server, 0x1234, 5), "the request has the client's options");
	MUST(!rdma_set_local_ece(server, &answer));
	param.qp_num = 1001;
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(mine, RDMA_CM_EVENT_CONNECT_RESPONSE));
	rule(has_ece(client, 0x1234, 0x80000006), "the reply has the server's options");
}

static void test_ece_is_a_reason_to_reject(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	rule_errno(0, cm_errno(rdma_reject_ece(cm_request(theirs), NULL, 0)),
		   "a request can be rejected because of its options");
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_VENDOR_OPTION,
	     "the client gets this reason");
}

static void test_type_of_service(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_create(mine, RDMA_PS_TCP), *server;
	union cm_addr to = cm_bound(listener);
	struct rdma_conn_param param = cm_param(0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t tos = 0x68;

	MUST(!rdma_set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	MUST(!rdma_resolve_addr(client, NULL, &to.any, WAIT_MS));
	MUST(!cm_await(mine, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(!rdma_resolve_route(client, WAIT_MS));
	MUST(!cm_await(mine, RDMA_CM_EVENT_ROUTE_RESOLVED));
	cm_make_qp(client);
	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(mine, RDMA_CM_EVENT_ESTABLISHED));
	MUST(!ibv_query_qp(client->qp, &attr, IBV_QP_AV, &init));
	rule(attr.ah_attr.grh.traffic_class == tos,
	     "the type of service is the QP's traffic class");
}

static void test_connection_with_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_event *event;

	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	rule_errno(0, cm_errno(rdma_create_srq(server, NULL, &init)),
		   "an SRQ can be created for an ID");
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(event->param.conn.srq == 1, "the peer's event says that the server has an SRQ");
	MUST(!rdma_ack_cm_event(event));
	MUST(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED));
	rule(transfers(client, server), "the server receives by the SRQ");
}

/* --- Refusal */

static void test_connect_without_listener_is_rejected(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_destroy_id(listener));
	MUST(!rdma_connect(client, &param));
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_NO_SERVICE,
	     "a request without a listener is rejected with reason 8");
	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)),
		   "a rejected ID refuses a second connect");
}

static void test_too_long_private_data_is_refused(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(REQ_DATA + 1);

	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)),
		   "a request with 57 bytes of private data is refused");
	param = cm_param(0);
	rule_errno(0, cm_errno(rdma_connect(client, &param)),
		   "the ID can connect with fewer bytes afterwards");
	server = cm_request(theirs);
	cm_make_qp(server);
	param = cm_param(REP_DATA + 1);
	rule_errno(EINVAL, cm_errno(rdma_accept(server, &param)),
		   "a reply with 197 bytes of private data is refused");
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_CONSUMER,
	     "a refused reply rejects the request");
}

static void test_reject_delivers_private_data(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_event *event;

	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	rule_errno(EINVAL, cm_errno(rdma_reject(server, cm_data(), REJ_DATA + 1)),
		   "a rejection with 149 bytes of private data is refused");
	rule_errno(0, cm_errno(rdma_reject(server, cm_data(), REJ_DATA)),
		   "a rejection with 148 bytes of private data is accepted");
	rule_errno(EINVAL, cm_errno(rdma_reject(server, NULL, 0)), "a second rejection is refused");
	event = cm_event(mine, RDMA_CM_EVENT_REJECTED);
	rule(event->status == REJ_CONSUMER, "a rejection has the consumer's reason");
	rule(event->param.conn.private_data_len == REJ_DATA &&
		     has_data(&event->param.conn, REJ_DATA),
	     "the client's event has the rejection's private data");
	MUST(!rdma_ack_cm_event(event));
	rule(cm_quiet(mine) && cm_quiet(theirs), "no further event arrives");
}

static void test_client_rejects_its_own_request(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	MUST(cm_request(theirs));
	rule_errno(0, cm_errno(rdma_reject(client, NULL, 0)),
		   "a client can reject its own request");
	rule_errno(EINVAL, cm_errno(rdma_reject(client, NULL, 0)),
		   "the client cannot reject the request twice");
	rule(cm_quiet(mine), "no event follows the client's rejection of its request");
}

/* The client repeats a request that exceeds the backlog. */
static void test_full_backlog_delays_requests(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *first = cm_client(mine, listener), *second = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(first, &param));
	MUST(!rdma_connect(second, &param));
	rule(cm_quiet(mine), "a full backlog does not reject a request");
	MUST(cm_request(theirs));
	rule(cm_heard(theirs) && cm_request(theirs), "a request beyond the backlog is repeated");
	rule(cm_quiet(mine), "a repeated request is not rejected");
}

static void test_listener_destroyed_with_pending_request(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 4);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	MUST(cm_heard(theirs));
	MUST(!rdma_destroy_id(listener));
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_CONSUMER,
	     "destroying a listener rejects its pending requests");
	rule(cm_quiet(theirs), "a destroyed listener raises no event");
}

/* --- End */

static void test_disconnect_raises_events(void)
{
	struct cm_pair pair;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "rdma_disconnect succeeds");
	MUST(!ibv_query_qp(pair.client->qp, &attr, IBV_QP_STATE, &init));
	rule(attr.qp_state == IBV_QPS_ERR, "after rdma_disconnect the QP is in ERR");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the peer gets the event DISCONNECTED");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "the peer can disconnect, too");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the first side gets the event DISCONNECTED");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "the first side gets the event TIMEWAIT_EXIT");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "the peer gets the event TIMEWAIT_EXIT");
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "a second rdma_disconnect succeeds");
}

static void test_both_sides_disconnect_at_once(void)
{
	struct cm_pair pair;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "the client can disconnect");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)),
		   "the server can disconnect at the same time");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the client gets the event DISCONNECTED");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the server gets the event DISCONNECTED");
	/* If both DREQs have crossed, Linux waits for a second call of a side (cm_dreq_handler). */
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "the client can disconnect again");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "the server can disconnect again");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "the client gets the event TIMEWAIT_EXIT");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "the server gets the event TIMEWAIT_EXIT");
	rule(cm_quiet(pair.client_channel) && cm_quiet(pair.server_channel),
	     "no further event arrives");
}

static void test_destroyed_id_disconnects_the_peer(void)
{
	struct cm_pair pair;

	cm_pair_open(&pair);
	MUST(!rdma_destroy_id(pair.listener));
	rule(transfers(pair.client, pair.server),
	     "a connection survives the destruction of its listener");
	rdma_destroy_qp(pair.server);
	rule_errno(0, cm_errno(rdma_destroy_id(pair.server)), "a connected ID can be destroyed");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "destroying an ID disconnects its peer");
}

/* Runs the client in another process, which is killed after it has connected. */
static void run_client(int in)
{
	struct rdma_event_channel *channel;
	struct rdma_conn_param param = cm_param(0);
	union cm_addr to;

	MUST(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	channel = cm_open();
	MUST(read(in, &to, sizeof(to)) == sizeof(to));
	MUST(!rdma_connect(cm_client_to(channel, RDMA_PS_TCP, to), &param));
	MUST(!cm_await(channel, RDMA_CM_EVENT_ESTABLISHED));
	for (;;)
		pause();
}

static void test_death_of_the_client_disconnects_the_server(void)
{
	struct rdma_conn_param param = cm_param(0);
	struct rdma_event_channel *channel;
	struct rdma_cm_id *server;
	union cm_addr addr;
	int ends[2];
	pid_t child;

	MUST(!pipe(ends));
	child = fork();
	MUST(child >= 0);
	if (!child)
		run_client(ends[0]);
	channel = cm_open();
	addr = cm_bound(cm_listener(channel, RDMA_PS_TCP, 1));
	MUST(write(ends[1], &addr, sizeof(addr)) == sizeof(addr));
	server = cm_request(channel);
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(channel, RDMA_CM_EVENT_ESTABLISHED));
	MUST(!kill(child, SIGKILL));
	rule(!cm_await(channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the death of a process disconnects its peer");
	MUST(waitpid(child, NULL, 0) == child);
}

const struct test cm_connect_tests[] = {
	{"connection", test_connection_carries_private_data_and_messages},
	{"steps", test_program_can_modify_its_own_qp},
	{"numbers", test_connection_of_numbers_without_queue_pairs},
	{"options", test_ece_options_reach_the_peer},
	{"options_rejected", test_ece_is_a_reason_to_reject},
	{"type_of_service", test_type_of_service},
	{"shared_receives", test_connection_with_srq},
	{"nobody", test_connect_without_listener_is_rejected},
	{"too_much", test_too_long_private_data_is_refused},
	{"rejection", test_reject_delivers_private_data},
	{"own_request", test_client_rejects_its_own_request},
	{"backlog", test_full_backlog_delays_requests},
	{"listener_gone", test_listener_destroyed_with_pending_request},
	{"disconnection", test_disconnect_raises_events},
	{"both_at_once", test_both_sides_disconnect_at_once},
	{"destruction", test_destroyed_id_disconnects_the_peer},
	{"death", test_death_of_the_client_disconnects_the_server},
	{NULL, NULL},
};
