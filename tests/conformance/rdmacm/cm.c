/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "hca.h"
#include "rule.h"

#define QUIET_MS 200
#define DEPTH    8

int cm_errno(int rc)
{
	return rc ? errno : 0;
}

/* --- Addresses */

union cm_addr cm_own(uint16_t port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	union cm_addr addr = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};

	if (memcmp(hca.gid.raw, mapped, sizeof(mapped))) {
		memcpy(&addr.v6.sin6_addr, hca.gid.raw, sizeof(addr.v6.sin6_addr));
		return addr;
	}
	addr.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	memcpy(&addr.v4.sin_addr, hca.gid.raw + sizeof(mapped), sizeof(addr.v4.sin_addr));
	return addr;
}

union cm_addr cm_any(int family, uint16_t port)
{
	union cm_addr addr = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};

	if (family == AF_INET)
		addr.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	return addr;
}

union cm_addr cm_bound(struct rdma_cm_id *id)
{
	union cm_addr addr;

	memcpy(&addr.room, &id->route.addr.src_storage, sizeof(addr.room));
	return addr;
}

/* --- Channels and IDs */

struct rdma_event_channel *cm_open(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		skip("no rdma_cm");
	return channel;
}

struct rdma_cm_id *cm_create(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(channel, &id, NULL, ps));
	return id;
}

static bool readable(const struct rdma_event_channel *channel, int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

bool cm_heard(struct rdma_event_channel *channel)
{
	return readable(channel, WAIT_MS);
}

struct rdma_cm_event *cm_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	MUST(cm_heard(channel));
	MUST(!rdma_get_cm_event(channel, &event));
	MUST(event->event == type);
	return event;
}

int cm_await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = cm_event(channel, type);
	int status = event->status;

	MUST(!rdma_ack_cm_event(event));
	return status;
}

struct rdma_cm_id *cm_request(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	MUST(!rdma_ack_cm_event(event));
	return id;
}

bool cm_quiet(struct rdma_event_channel *channel)
{
	return !readable(channel, QUIET_MS);
}

/* --- On the way to a connection */

struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       int backlog)
{
	struct rdma_cm_id *id = cm_create(channel, ps);
	union cm_addr own = cm_own(0);

	MUST(!rdma_bind_addr(id, &own.any));
	MUST(!rdma_listen(id, backlog));
	return id;
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_all = 1,
		.srq = id->srq,
	};

	MUST(!rdma_create_qp(id, NULL, &attr));
}

struct rdma_cm_id *cm_client_to(struct rdma_event_channel *channel, enum rdma_port_space ps,
				union cm_addr to)
{
	struct rdma_cm_id *id = cm_create(channel, ps);

	MUST(!rdma_resolve_addr(id, NULL, &to.any, WAIT_MS));
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(id->verbs && id->verbs->device);
	MUST(!rdma_resolve_route(id, WAIT_MS));
	MUST(!cm_await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	cm_make_qp(id);
	return id;
}

struct rdma_cm_id *cm_client(struct rdma_event_channel *channel, struct rdma_cm_id *listener)
{
	return cm_client_to(channel, listener->ps, cm_bound(listener));
}

const uint8_t *cm_data(void)
{
	static uint8_t data[255];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	return data;
}

struct rdma_conn_param cm_param(uint8_t private_len)
{
	return (struct rdma_conn_param){.private_data = cm_data(),
					.private_data_len = private_len,
					.responder_resources = 3,
					.initiator_depth = 2,
					.retry_count = 5,
					.rnr_retry_count = 4};
}

void cm_pair_open(struct cm_pair *pair)
{
	struct rdma_conn_param param = cm_param(0);

	pair->server_channel = cm_open();
	pair->client_channel = cm_open();
	pair->listener = cm_listener(pair->server_channel, RDMA_PS_TCP, 4);
	pair->client = cm_client(pair->client_channel, pair->listener);
	MUST(!rdma_connect(pair->client, &param));
	pair->server = cm_request(pair->server_channel);
	cm_make_qp(pair->server);
	MUST(!rdma_accept(pair->server, &param));
	MUST(!cm_await(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED));
	MUST(!cm_await(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED));
}
