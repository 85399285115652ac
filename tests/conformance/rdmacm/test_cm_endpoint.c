/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_create_ep: IDs with their QP, in synchronous mode: each call waits for its events
 * itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_qp_init_attr qp_init(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.qp_type = type,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

static struct rdma_addrinfo *resolve_address(const struct rdma_addrinfo *hints, uint16_t port)
{
	union cm_addr own = cm_own(port);
	char node[INET6_ADDRSTRLEN], service[8];
	struct rdma_addrinfo *found;

	MUST(inet_ntop(own.any.sa_family,
		       own.any.sa_family == AF_INET ? (const void *)&own.v4.sin_addr
						    : (const void *)&own.v6.sin6_addr,
		       node, sizeof(node)));
	snprintf(service, sizeof(service), "%u", port);
	MUST(!rdma_getaddrinfo(node, service, hints, &found));
	return found;
}

static struct rdma_cm_id *listen_as(const struct rdma_addrinfo *hints)
{
	struct ibv_qp_init_attr init = qp_init((enum ibv_qp_type)hints->ai_qp_type);
	struct rdma_addrinfo passive = *hints, *found;
	struct rdma_cm_id *listener;

	passive.ai_flags = RAI_PASSIVE;
	found = resolve_address(&passive, 0);
	MUST(!rdma_create_ep(&listener, found, NULL, &init));
	rdma_freeaddrinfo(found);
	MUST(!rdma_listen(listener, 4));
	return listener;
}

/* Connects the client, which waits for the server. */
static void *connect_client(void *arg)
{
	struct rdma_cm_id *client = arg;
	struct rdma_conn_param param = cm_param(8);

	return rdma_connect(client, &param) ? NULL : client;
}

/* Accepts the client's connection; returns the server's ID. */
static struct rdma_cm_id *accept_client(struct rdma_cm_id *listener, struct rdma_cm_id *client)
{
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_id *server;
	pthread_t thread;
	void *connected;

	MUST(!pthread_create(&thread, NULL, connect_client, client));
	MUST(!rdma_get_request(listener, &server));
	param.qp_num = server->qp->qp_num;
	MUST(!rdma_accept(server, &param));
	MUST(!pthread_join(thread, &connected));
	rule(connected == client, "a synchronous connect returns when the client is connected");
	return server;
}

static void check_connection(enum rdma_port_space ps, enum ibv_qp_type type)
{
	const struct rdma_addrinfo hints = {.ai_port_space = ps, .ai_qp_type = type};
	struct rdma_cm_id *listener = listen_as(&hints), *client, *server;
	struct rdma_addrinfo *found = resolve_address(&hints, ntohs(rdma_get_src_port(listener)));
	struct ibv_qp_init_attr init = qp_init(type);
	bool type_kept;

	if (!hca_has(type))
		hca_lacks("queue pairs of this type");
	rule_errno(0, cm_errno(rdma_create_ep(&client, found, NULL, &init)),
		   "rdma_create_ep resolves the route");
	rdma_freeaddrinfo(found);
	server = accept_client(listener, client);
	type_kept = server->qp->qp_type == type && client->qp->qp_type == type;
	rule(type_kept, "the QPs have the requested type");
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

static void test_rc_endpoints_connect(void)
{
	check_connection(RDMA_PS_TCP, IBV_QPT_RC);
}

static void test_uc_endpoints_connect(void)
{
	check_connection(RDMA_PS_IB, IBV_QPT_UC);
}

static void test_ud_endpoints_meet(void)
{
	check_connection(RDMA_PS_UDP, IBV_QPT_UD);
}

/* A listener for one QP type refuses requests of another type. */
static void test_listener_refuses_other_qp_types(void)
{
	const struct rdma_addrinfo uc = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_UC},
				   rc = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_RC};
	struct rdma_cm_id *listener = listen_as(&uc), *client;
	struct rdma_addrinfo *found = resolve_address(&rc, ntohs(rdma_get_src_port(listener)));
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_create_ep(&client, found, NULL, &init));
	rule_errno(ECONNREFUSED, cm_errno(rdma_connect(client, &param)),
		   "a request of another QP type is refused");
	rule(client->event && client->event->status == REJ_CONSUMER,
	     "the listener's side rejects another QP type");
}

/* rdma_post_read and rdma_post_write of <rdma/rdma_verbs.h>. */
static void check_one_sided(struct rdma_cm_id *client, struct rdma_cm_id *server)
{
	static uint8_t mine[64], theirs[64];
	struct ibv_mr *local = rdma_reg_msgs(client, mine, sizeof(mine)),
		      *readable = rdma_reg_read(server, theirs, sizeof(theirs)),
		      *writable = rdma_reg_write(server, theirs, sizeof(theirs));
	struct ibv_wc wc;

	MUST(local && readable && writable);
	memcpy(theirs, cm_data(), sizeof(theirs));
	MUST(!rdma_post_read(client, &wc, mine, sizeof(mine), local, 0, (uintptr_t)theirs,
			     readable->rkey));
	rule(rdma_get_send_comp(client, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
		     !memcmp(mine, cm_data(), sizeof(mine)),
	     "memory of rdma_reg_read can be read");
	memset(theirs, 0, sizeof(theirs));
	MUST(!rdma_post_write(client, &wc, mine, sizeof(mine), local, 0, (uintptr_t)theirs,
			      writable->rkey));
	rule(rdma_get_send_comp(client, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
		     !memcmp(theirs, cm_data(), sizeof(theirs)),
	     "memory of rdma_reg_write can be written");
	MUST(!rdma_post_write(client, &wc, mine, sizeof(mine), local, 0, (uintptr_t)theirs,
			      readable->rkey));
	rule(rdma_get_send_comp(client, &wc) == 1 && wc.status == IBV_WC_REM_ACCESS_ERR,
	     "memory of rdma_reg_read cannot be written");
}

static void test_reads_and_writes(void)
{
	const struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC);
	struct rdma_cm_id *listener = listen_as(&hints), *client;
	struct rdma_addrinfo *found = resolve_address(&hints, ntohs(rdma_get_src_port(listener)));

	init.sq_sig_all = 1;
	MUST(!rdma_create_ep(&client, found, NULL, &init));
	check_one_sided(client, accept_client(listener, client));
}

/* rdma_migrate_id without a channel: further calls wait for their events. */
static void test_asynchronous_id_becomes_synchronous(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 1), *server;
	struct rdma_cm_id *client = cm_client(mine, listener);
	struct rdma_conn_param param = cm_param(0);
	pthread_t thread;
	void *connected;

	rule_errno(0, cm_errno(rdma_migrate_id(client, NULL)), "an ID can leave its channel");
	MUST(!pthread_create(&thread, NULL, connect_client, client));
	server = cm_request(theirs);
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!pthread_join(thread, &connected));
	rule(connected && client->event && client->event->event == RDMA_CM_EVENT_ESTABLISHED,
	     "its connect waits for the event");
	rule(cm_quiet(mine), "the channel gets no event of it");
}

/* rxe has no XRC. */
static void test_xrc_endpoint_needs_xrc(void)
{
	const struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_IB,
					    .ai_qp_type = IBV_QPT_XRC_SEND};
	struct rdma_addrinfo *found = resolve_address(&hints, 7);
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_XRC_SEND);
	struct rdma_cm_id *id;

	if (hca.attr.device_cap_flags & IBV_DEVICE_XRC)
		skip_here("the device has XRC");
	rule_errno(EOPNOTSUPP, cm_errno(rdma_create_ep(&id, found, NULL, &init)),
		   "a device without XRC refuses an XRC endpoint");
}

const struct test cm_endpoint_tests[] = {
	{"reliable", test_rc_endpoints_connect},
	{"unreliable", test_uc_endpoints_connect},
	{"datagrams", test_ud_endpoints_meet},
	{"types", test_listener_refuses_other_qp_types},
	{"extended", test_xrc_endpoint_needs_xrc},
	{"one_sided", test_reads_and_writes},
	{"synchronous", test_asynchronous_id_becomes_synchronous},
	{NULL, NULL},
};
