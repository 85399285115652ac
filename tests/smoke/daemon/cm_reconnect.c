/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uses rdma_cm on command, while a test stops and starts daemons. Each letter on standard input is
 * a command, and the program repeats the letter on standard output after it has executed it.
 *
 *   l  listens
 *   c  connects to the listener and accepts the connection
 *   p  sends a message in each direction
 *   d  disconnects, and waits for the event at both ends
 *   i  creates and destroys an ID
 *   v  expects the device with the context that it had at the first time
 *   r  waits for the removal of the device from both ends and the listener
 *   u  destroys all IDs, QPs and event channels, lists the devices, and opens new event channels
 */
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
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
	uint32_t sent, received; /* the payloads of the end's last messages */
};

static struct rdma_cm_id *listener;
static struct end active, passive; /* the listener uses the passive end's event channel */

static void open_all(void)
{
	active.channel = rdma_create_event_channel();
	passive.channel = rdma_create_event_channel();
	if (!active.channel || !passive.channel)
		err(1, "no rdma_cm");
}

/* Waits for the next event, which must have this type, and returns its ID. */
static struct rdma_cm_id *await_event(const struct end *end, enum rdma_cm_event_type type)
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

static void start_listener(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	if (rdma_create_id(passive.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 1))
		err(1, "cannot listen");
}

static void create_qp(struct end *end)
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
	await_event(&active, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(active.id, TIMEOUT_MS))
		err(1, "rdma_resolve_route");
	await_event(&active, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_qp(&active);
	if (rdma_connect(active.id, &param))
		err(1, "rdma_connect");
	passive.id = await_event(&passive, RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(&passive);
	if (rdma_accept(passive.id, &param))
		err(1, "rdma_accept");
	await_event(&active, RDMA_CM_EVENT_ESTABLISHED);
	await_event(&passive, RDMA_CM_EVENT_ESTABLISHED);
}

static void complete(int n, const struct ibv_wc *wc)
{
	if (n != 1 || wc->status)
		errx(1, "completion: %s", n == 1 ? ibv_wc_status_str(wc->status) : "none");
}

static void pass_message(struct end *from, struct end *to)
{
	struct ibv_wc wc;

	from->sent++;
	if (rdma_post_recv(to->id, NULL, &to->received, sizeof(to->received), to->mr) ||
	    rdma_post_send(from->id, NULL, &from->sent, sizeof(from->sent), from->mr, 0))
		err(1, "cannot pass a message");
	complete(rdma_get_send_comp(from->id, &wc), &wc);
	complete(rdma_get_recv_comp(to->id, &wc), &wc);
	if (to->received != from->sent)
		errx(1, "received %u instead of %u", to->received, from->sent);
}

static void disconnect_end(struct end *end)
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
	await_event(&passive, RDMA_CM_EVENT_DISCONNECTED);
	if (rdma_disconnect(passive.id))
		err(1, "rdma_disconnect of the passive end");
	await_event(&active, RDMA_CM_EVENT_DISCONNECTED);
	disconnect_end(&active);
	disconnect_end(&passive);
}

static void create_and_destroy_id(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(active.channel, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id))
		err(1, "no ID");
}

/* librdmacm opens a context for each ibv_device that libibverbs lists. */
static struct ibv_context **get_devices(void)
{
	struct ibv_context **contexts = rdma_get_devices(NULL);

	if (!contexts || !contexts[0])
		err(1, "rdma_get_devices");
	return contexts;
}

static void expect_context(void)
{
	static struct ibv_context *first;
	struct ibv_context **contexts = get_devices();

	if (first && contexts[0] != first)
		errx(1, "the device has another context");
	first = contexts[0];
	rdma_free_devices(contexts);
}

static void await_removal(void)
{
	await_event(&active, RDMA_CM_EVENT_DEVICE_REMOVAL);
	await_event(&passive, RDMA_CM_EVENT_DEVICE_REMOVAL);
	await_event(&passive, RDMA_CM_EVENT_DEVICE_REMOVAL);
}

static void destroy_all(void)
{
	disconnect_end(&active);
	disconnect_end(&passive);
	if (rdma_destroy_id(listener))
		err(1, "rdma_destroy_id");
	listener = NULL;
	rdma_destroy_event_channel(active.channel);
	rdma_destroy_event_channel(passive.channel);
}

/* librdmacm closes the context that died, and opens a new one. */
static void begin_anew(void)
{
	struct ibv_context **contexts;
	struct ibv_pd *pd;

	destroy_all();
	contexts = get_devices();
	pd = ibv_alloc_pd(contexts[0]);
	if (!pd || ibv_dealloc_pd(pd))
		err(1, "no PD");
	rdma_free_devices(contexts);
	open_all();
}

static void run_command(int order)
{
	switch (order) {
	case 'l': start_listener(); break;
	case 'c': connect_ends(); break;
	case 'p':
		pass_message(&active, &passive);
		pass_message(&passive, &active);
		break;
	case 'd': disconnect_ends(); break;
	case 'i': create_and_destroy_id(); break;
	case 'v': expect_context(); break;
	case 'r': await_removal(); break;
	case 'u': begin_anew(); break;
	default: errx(2, "no such order: %c", order);
	}
}

int main(void)
{
	open_all();
	take_orders(run_command);
	return 0;
}
