/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections by rdma_cm: what they carry, how they are refused, and how they end. */
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

/* --- What it carries */

/* From one end to the other; by the SRQ that the receiver has, if it has one. */
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

static void connection(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(REQ_DATA);
	struct rdma_cm_event *event;

	rule_errno(0, cm_errno(rdma_connect(client, &param)), "a request takes 56 bytes");
	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)), "an ID makes one request");
	event = cm_event(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rule(event->listen_id == listener, "the listener hears of it");
	rule(has_data(&event->param.conn, REQ_DATA), "with its data");
	rule(event->param.conn.private_data_len == REQ_DATA, "all there is room for");
	rule(event->param.conn.qp_num == client->qp->qp_num, "the queue pair's number");
	rule(event->param.conn.responder_resources == 2 && event->param.conn.initiator_depth == 3,
	     "and depths, as seen from here");
	rule(event->param.conn.retry_count == 5 && event->param.conn.rnr_retry_count == 4,
	     "and retries");
	rule(rdma_get_dst_port(server) == rdma_get_src_port(client) &&
		     rdma_get_src_port(server) == rdma_get_src_port(listener),
	     "both ends have each other's ports");
	MUST(!rdma_ack_cm_event(event));
	cm_make_qp(server);
	param = cm_param(REP_DATA);
	rule_errno(0, cm_errno(rdma_accept(server, &param)), "a reply takes 196 bytes");
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(has_data(&event->param.conn, REP_DATA), "which the client gets");
	MUST(!rdma_ack_cm_event(event));
	rule(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED), "then the server is connected, too");
	rule(transfers(client, server) && transfers(server, client), "data go both ways");
	rule(cm_quiet(mine) && cm_quiet(theirs), "no other events come");
}

/* Without a queue pair of librdmacm's the program does the steps itself. */
static void steps(void)
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
	     "a queue pair without a peer has no way there");
	MUST(!rdma_connect(client, &param));
	rule_errno(EINVAL, cm_errno(rdma_init_qp_attr(client, &attr, &mask)),
		   "nor before there is an answer");
	server = cm_request(theirs);
	MUST(!rdma_set_option(server, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	cm_make_qp(server);
	param = cm_param(0);
	MUST(!rdma_accept(server, &param));
	rule(!cm_await(mine, RDMA_CM_EVENT_CONNECT_RESPONSE), "it hears of the answer");
	MUST(!rdma_init_qp_attr(client, &attr, &mask));
	rule(attr.dest_qp_num == server->qp->qp_num && attr.ah_attr.is_global &&
		     mask & IBV_QP_DEST_QPN && mask & IBV_QP_AV,
	     "after it there is one");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
	MUST(!rdma_init_qp_attr(client, &attr, &mask));
	rule(attr.timeout == timeout, "with the timeout that was wished for");
	rule(attr.retry_cnt == 5, "and the retries");
	rule(cm_quiet(theirs), "the server is not connected yet");
	rule_errno(0, cm_errno(rdma_establish(client)), "until the client says so");
	rule(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED), "then it is");
	client->qp = qp;
}

static void type_of_service(void)
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
	rule(attr.ah_attr.grh.traffic_class == tos, "a type of service is the queue pair's");
}

static void shared_receives(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_event *event;

	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	rule_errno(0, cm_errno(rdma_create_srq(server, NULL, &init)), "an ID may have a SRQ");
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	event = cm_event(mine, RDMA_CM_EVENT_ESTABLISHED);
	rule(event->param.conn.srq == 1, "of which the peer hears");
	MUST(!rdma_ack_cm_event(event));
	MUST(!cm_await(theirs, RDMA_CM_EVENT_ESTABLISHED));
	rule(transfers(client, server), "and receives by it");
}

/* --- How it is refused */

static void nobody(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_destroy_id(listener));
	MUST(!rdma_connect(client, &param));
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_NO_SERVICE,
	     "where nobody listens there is no service");
	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)), "the ID has had its chance");
}

static void too_much(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(REQ_DATA + 1);

	rule_errno(EINVAL, cm_errno(rdma_connect(client, &param)), "57 bytes are too many");
	param = cm_param(0);
	rule_errno(0, cm_errno(rdma_connect(client, &param)), "it may be said in fewer");
	server = cm_request(theirs);
	cm_make_qp(server);
	param = cm_param(REP_DATA + 1);
	rule_errno(EINVAL, cm_errno(rdma_accept(server, &param)), "197 are too many for a reply");
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_CONSUMER, "and reject the request");
}

static void rejection(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_event *event;

	MUST(!rdma_connect(client, &param));
	server = cm_request(theirs);
	rule_errno(EINVAL, cm_errno(rdma_reject(server, cm_data(), REJ_DATA + 1)),
		   "a rejection takes no 149 bytes");
	rule_errno(0, cm_errno(rdma_reject(server, cm_data(), REJ_DATA)), "but 148");
	rule_errno(EINVAL, cm_errno(rdma_reject(server, NULL, 0)), "there is one of them");
	event = cm_event(mine, RDMA_CM_EVENT_REJECTED);
	rule(event->status == REJ_CONSUMER, "the reason is the program's");
	rule(event->param.conn.private_data_len == REJ_DATA &&
		     has_data(&event->param.conn, REJ_DATA),
	     "the data come with it");
	MUST(!rdma_ack_cm_event(event));
	rule(cm_quiet(mine) && cm_quiet(theirs), "and that is all");
}

/* What does not fit in the backlog is asked again. */
static void backlog(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1);
	struct rdma_cm_id *first = cm_client(mine, listener), *second = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(first, &param));
	MUST(!rdma_connect(second, &param));
	rule(cm_quiet(mine), "a full backlog is no rejection");
	MUST(cm_request(theirs));
	rule(cm_heard(theirs) && cm_request(theirs), "what had no place comes again");
	rule(cm_quiet(mine), "nor is it one later");
}

static void listener_gone(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 4);
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_connect(client, &param));
	MUST(cm_heard(theirs));
	MUST(!rdma_destroy_id(listener));
	rule(cm_await(mine, RDMA_CM_EVENT_REJECTED) == REJ_CONSUMER,
	     "requests that nobody fetched are rejected with their listener");
	rule(cm_quiet(theirs), "and heard of no more");
}

/* --- How it ends */

static void disconnection(void)
{
	struct cm_pair pair;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "either side may disconnect");
	MUST(!ibv_query_qp(pair.client->qp, &attr, IBV_QP_STATE, &init));
	rule(attr.qp_state == IBV_QPS_ERR, "its queue pair is in ERR then");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED), "the other hears of it");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "and agrees");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "of which the first hears");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "after a time nothing of it can be on its way any more");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), "on either side");
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "to disconnect again does no harm");
}

static void both_at_once(void)
{
	struct cm_pair pair;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "both may disconnect");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "at once");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED), "each hears of it");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED), "once");
	/* Where the requests have crossed, Linux waits for a side to agree (cm_dreq_handler). */
	rule_errno(0, cm_errno(rdma_disconnect(pair.client)), "and may agree");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "though it has begun");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), "then of its end");
	rule(!cm_await(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), "and no more");
	rule(cm_quiet(pair.client_channel) && cm_quiet(pair.server_channel), "than that");
}

static void destruction(void)
{
	struct cm_pair pair;

	cm_pair_open(&pair);
	MUST(!rdma_destroy_id(pair.listener));
	rule(transfers(pair.client, pair.server), "a connection outlives its listener");
	rdma_destroy_qp(pair.server);
	rule_errno(0, cm_errno(rdma_destroy_id(pair.server)), "an ID is destroyed");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "which disconnects its peer");
}

/* The client of another process, which is killed when it is connected. */
static void be_client(int in)
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

static void death(void)
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
		be_client(ends[0]);
	channel = cm_open();
	addr = cm_bound(cm_listener(channel, RDMA_PS_TCP, 1));
	MUST(write(ends[1], &addr, sizeof(addr)) == sizeof(addr));
	server = cm_request(channel);
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(channel, RDMA_CM_EVENT_ESTABLISHED));
	MUST(!kill(child, SIGKILL));
	rule(!cm_await(channel, RDMA_CM_EVENT_DISCONNECTED), "who dies is disconnected");
	MUST(waitpid(child, NULL, 0) == child);
}

const struct test cm_connect_tests[] = {
	{"connection", connection},
	{"steps", steps},
	{"type_of_service", type_of_service},
	{"shared_receives", shared_receives},
	{"nobody", nobody},
	{"too_much", too_much},
	{"rejection", rejection},
	{"backlog", backlog},
	{"listener_gone", listener_gone},
	{"disconnection", disconnection},
	{"both_at_once", both_at_once},
	{"destruction", destruction},
	{"death", death},
	{NULL, NULL},
};
