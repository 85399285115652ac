/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that uses rdma_cm as it is told while daemons come and go. Each letter on
 * standard input is an order; it is written to standard output once it is done.
 *
 *   l  listens
 *   c  connects to the listener, and accepts that
 *   p  passes a message each way
 *   d  disconnects, and waits until both ends have heard of it
 *   i  makes and destroys an ID
 */
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "orders.h"

#define TIMEOUT_MS 100000

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint32_t given, taken; /* one at the other end's place */
};

static struct rdma_cm_id *listener;
static struct end active, passive; /* the listener's channel is the passive end's */

static void open_all(void)
{
	active.channel = rdma_create_event_channel();
	passive.channel = rdma_create_event_channel();
	if (!active.channel || !passive.channel)
		err(1, "no rdma_cm");
}

/* The ID of the next event, which is to be of this type. */
static struct rdma_cm_id *await(const struct end *end, enum rdma_cm_event_type type)
{
	struct pollfd fd = {.fd = end->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (poll(&fd, 1, TIMEOUT_MS) != 1)
		errx(1, "no %s comes", rdma_event_str(type));
	if (rdma_get_cm_event(end->channel, &event))
		err(1, "rdma_get_cm_event");
	if (event->event != type)
		errx(1, "not %s comes but %s, status %d", rdma_event_str(type),
		     rdma_event_str(event->event), event->status);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = listener ? rdma_get_src_port(listener) : 0};
}

static void listen_for_one(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	if (rdma_create_id(passive.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 1))
		err(1, "cannot listen");
}

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {2, 2, 1, 1, 0}};

	if (rdma_create_qp(end->id, NULL, &init))
		err(1, "rdma_create_qp");
	end->mr = rdma_reg_msgs(end->id, end, sizeof(*end));
	if (!end->mr)
		err(1, "rdma_reg_msgs");
}

static void connect_ends(void)
{
	struct sockaddr_in to = loopback();
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

	if (rdma_create_id(active.channel, &active.id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(active.id, NULL, (struct sockaddr *)&to, TIMEOUT_MS))
		err(1, "rdma_resolve_addr");
	await(&active, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(active.id, TIMEOUT_MS))
		err(1, "rdma_resolve_route");
	await(&active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(&active);
	if (rdma_connect(active.id, &param))
		err(1, "rdma_connect");
	passive.id = await(&passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(&passive);
	if (rdma_accept(passive.id, &param))
		err(1, "rdma_accept");
	await(&active, RDMA_CM_EVENT_ESTABLISHED);
	await(&passive, RDMA_CM_EVENT_ESTABLISHED);
}

static void complete(int n, const struct ibv_wc *wc)
{
	if (n != 1 || wc->status)
		errx(1, "completion: %s", n == 1 ? ibv_wc_status_str(wc->status) : "none");
}

static void pass(struct end *from, struct end *to)
{
	struct ibv_wc wc;

	from->given++;
	if (rdma_post_recv(to->id, NULL, &to->taken, sizeof(to->taken), to->mr) ||
	    rdma_post_send(from->id, NULL, &from->given, sizeof(from->given), from->mr, 0))
		err(1, "cannot pass a message");
	complete(rdma_get_send_comp(from->id, &wc), &wc);
	complete(rdma_get_recv_comp(to->id, &wc), &wc);
	if (to->taken != from->given)
		errx(1, "%u comes, not %u", to->taken, from->given);
}

static void drop(struct end *end)
{
	rdma_dereg_mr(end->mr);
	rdma_destroy_qp(end->id);
	if (rdma_destroy_id(end->id))
		err(1, "rdma_destroy_id");
}

static void disconnect_ends(void)
{
	if (rdma_disconnect(active.id))
		err(1, "rdma_disconnect");
	await(&passive, RDMA_CM_EVENT_DISCONNECTED);
	if (rdma_disconnect(passive.id))
		err(1, "rdma_disconnect of the passive end");
	await(&active, RDMA_CM_EVENT_DISCONNECTED);
	drop(&active);
	drop(&passive);
}

static void make_id(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(active.channel, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id))
		err(1, "no ID");
}

static void obey(int order)
{
	switch (order) {
	case 'l': listen_for_one(); break;
	case 'c': connect_ends(); break;
	case 'p':
		pass(&active, &passive);
		pass(&passive, &active);
		break;
	case 'd': disconnect_ends(); break;
	case 'i': make_id(); break;
	default: errx(2, "no such order: %c", order);
	}
}

int main(void)
{
	open_all();
	take_orders(obey);
	return 0;
}
