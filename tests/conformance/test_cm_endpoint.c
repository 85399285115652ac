/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints: IDs of rdma_cm with their queue pairs in one piece, whose calls wait for events
 * themselves. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

static struct rdma_addrinfo *find(const struct rdma_addrinfo *hints, uint16_t port)
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
	found = find(&passive, 0);
	MUST(!rdma_create_ep(&listener, found, NULL, &init));
	rdma_freeaddrinfo(found);
	MUST(!rdma_listen(listener, 4));
	return listener;
}

/* The client's part, which waits for the server's. */
static void *connect_it(void *arg)
{
	struct rdma_cm_id *client = arg;
	struct rdma_conn_param param = cm_param(8);

	return rdma_connect(client, &param) ? NULL : client;
}

/* The server's ID, with its client connected. */
static struct rdma_cm_id *meet(struct rdma_cm_id *listener, struct rdma_cm_id *client)
{
	struct rdma_conn_param param = cm_param(0);
	struct rdma_cm_id *server;
	pthread_t thread;
	void *connected;

	MUST(!pthread_create(&thread, NULL, connect_it, client));
	MUST(!rdma_get_request(listener, &server));
	param.qp_num = server->qp->qp_num;
	MUST(!rdma_accept(server, &param));
	MUST(!pthread_join(thread, &connected));
	rule(connected == client, "a client connects, and waits until it is");
	return server;
}

static void meet_as(enum rdma_port_space ps, enum ibv_qp_type type)
{
	const struct rdma_addrinfo hints = {.ai_port_space = ps, .ai_qp_type = type};
	struct rdma_cm_id *listener = listen_as(&hints), *client, *server;
	struct rdma_addrinfo *found = find(&hints, ntohs(rdma_get_src_port(listener)));
	struct ibv_qp_init_attr init = qp_init(type);
	bool type_kept;

	rule_errno(0, cm_errno(rdma_create_ep(&client, found, NULL, &init)),
		   "an endpoint finds its way");
	rdma_freeaddrinfo(found);
	server = meet(listener, client);
	type_kept = server->qp->qp_type == type && client->qp->qp_type == type;
	rule(type_kept, "with queue pairs of the type that was asked for");
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

static void reliable(void)
{
	meet_as(RDMA_PS_TCP, IBV_QPT_RC);
}

static void unreliable(void)
{
	meet_as(RDMA_PS_IB, IBV_QPT_UC);
}

static void datagrams(void)
{
	meet_as(RDMA_PS_UDP, IBV_QPT_UD);
}

/* Who listens for one type of queue pair is nobody for another. */
static void types(void)
{
	const struct rdma_addrinfo uc = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_UC},
				   rc = {.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_RC};
	struct rdma_cm_id *listener = listen_as(&uc), *client;
	struct rdma_addrinfo *found = find(&rc, ntohs(rdma_get_src_port(listener)));
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC);
	struct rdma_conn_param param = cm_param(0);

	MUST(!rdma_create_ep(&client, found, NULL, &init));
	rule_errno(ECONNREFUSED, cm_errno(rdma_connect(client, &param)), "a type is refused");
	rule(client->event && client->event->status == REJ_CONSUMER, "by the listener");
}

/* Of rxe, which has none. */
static void extended(void)
{
	const struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_IB,
					    .ai_qp_type = IBV_QPT_XRC_SEND};
	struct rdma_addrinfo *found = find(&hints, 7);
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_XRC_SEND);
	struct rdma_cm_id *id;

	if (hca.attr.device_cap_flags & IBV_DEVICE_XRC)
		skip_here("the device has XRC");
	rule_errno(EOPNOTSUPP, cm_errno(rdma_create_ep(&id, found, NULL, &init)),
		   "without XRC there is no such endpoint");
}

const struct test cm_endpoint_tests[] = {
	{"reliable", reliable}, {"unreliable", unreliable}, {"datagrams", datagrams},
	{"types", types},       {"extended", extended},     {NULL, NULL},
};
