/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect_many by rdma_cm: one thread, one event channel, one completion queue, one SRQ. */
#include "connect_many.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define BACKLOG    4096
#define TIMEOUT_MS 20000
#define POLLED     64 /* completions taken at a time */

struct connection {
	struct rdma_cm_id *id;
	struct message *sent;
	uint32_t index;
	unsigned int rounds; /* answered */
};

static struct {
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *completions;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct message
		*messages; /* `count` to receive into, then one to send for each connection */
	struct connection *connections;
	struct connection **by_qpn; /* hash table with linear probing */
	uint32_t table_mask;
	uint32_t count;
	uint32_t begun, connected, repeated, closed;
	struct sockaddr_in *to; /* NULL: this is the server */
	double start;
} self;

/* --- Objects that all connections share */

static void make_channel(void)
{
	self.channel = rdma_create_event_channel();
	if (!self.channel || fcntl(self.channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "rdma_create_event_channel");
}

static void make_tables(uint32_t count)
{
	uint32_t slots = 1;

	while (slots < 2 * count)
		slots *= 2;
	self.count = count;
	self.table_mask = slots - 1;
	self.by_qpn = calloc(slots, sizeof(*self.by_qpn));
	self.connections = calloc(count, sizeof(*self.connections));
	self.messages = calloc(2 * (size_t)count, sizeof(*self.messages));
	if (!self.by_qpn || !self.connections || !self.messages)
		err(1, "memory");
}

static void post_recv(struct message *message)
{
	struct ibv_sge sge = {(uintptr_t)message, sizeof(*message), self.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)message, .sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_srq_recv(self.srq, &wr, &bad);
	if (errno)
		err(1, "ibv_post_srq_recv");
}

static void make_objects(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = self.count, .max_sge = 1}};

	self.pd = ibv_alloc_pd(verbs);
	self.completions = ibv_create_comp_channel(verbs);
	if (!self.pd || !self.completions || fcntl(self.completions->fd, F_SETFL, O_NONBLOCK))
		err(1, "cannot create a protection domain and a channel");
	self.cq = ibv_create_cq(verbs, (int)(2 * self.count), NULL, self.completions, 0);
	self.srq = ibv_create_srq(self.pd, &srq);
	self.mr = ibv_reg_mr(self.pd, self.messages, 2 * self.count * sizeof(*self.messages),
			     IBV_ACCESS_LOCAL_WRITE);
	if (!self.cq || !self.srq || !self.mr)
		err(1, "cannot create the queues");
	for (uint32_t i = 0; i < self.count; i++)
		post_recv(&self.messages[i]);
}

static void destroy_objects(void)
{
	if (ibv_destroy_srq(self.srq) || ibv_destroy_cq(self.cq) ||
	    ibv_destroy_comp_channel(self.completions) || ibv_dereg_mr(self.mr) ||
	    ibv_dealloc_pd(self.pd))
		errx(1, "cannot destroy an object");
	rdma_destroy_event_channel(self.channel);
	free(self.messages);
	free(self.connections);
	free(self.by_qpn);
}

/* --- Connections */

static struct connection *find_connection(uint32_t qpn)
{
	uint32_t i = qpn & self.table_mask;

	while (self.by_qpn[i] && self.by_qpn[i]->id->qp->qp_num != qpn)
		i = (i + 1) & self.table_mask;
	if (!self.by_qpn[i])
		errx(1, "a completion of the unknown queue pair %u", qpn);
	return self.by_qpn[i];
}

static void make_qp(struct connection *c)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 2, .max_send_sge = 1}};
	uint32_t i;

	if (!self.pd)
		make_objects(c->id->verbs);
	init.send_cq = init.recv_cq = self.cq;
	init.srq = self.srq;
	if (rdma_create_qp(c->id, self.pd, &init))
		err(1, "rdma_create_qp");
	for (i = c->id->qp->qp_num & self.table_mask; self.by_qpn[i]; i = (i + 1) & self.table_mask)
		;
	self.by_qpn[i] = c;
}

static struct connection *new_connection(struct rdma_cm_id *id)
{
	struct connection *c = &self.connections[self.begun];

	if (self.begun == self.count)
		errx(1, "one more connection than expected");
	*c = (struct connection){
		.id = id, .index = self.begun, .sent = &self.messages[self.count + self.begun]};
	id->context = c;
	self.begun++;
	return c;
}

static void begin(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(self.channel, &id, NULL, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	new_connection(id);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)self.to, TIMEOUT_MS))
		err(1, "rdma_resolve_addr");
}

static void send_message(struct connection *c, uint32_t seed)
{
	struct ibv_sge sge = {(uintptr_t)c->sent, sizeof(*c->sent), self.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	message_fill(c->sent, seed);
	errno = ibv_post_send(c->id->qp, &wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
}

static void close_connection(struct connection *c)
{
	rdma_destroy_qp(c->id);
	if (rdma_destroy_id(c->id))
		err(1, "rdma_destroy_id");
	self.closed++;
}

/* --- Events */

static void handle_cm_event(enum rdma_cm_event_type type, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct connection *c = id->context;

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, TIMEOUT_MS))
			err(1, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(c);
		if (rdma_connect(id, &param))
			err(1, "rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(new_connection(id));
		if (rdma_accept(id, &param))
			err(1, "rdma_accept");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (self.to)
			send_message(c, message_seed(c->index, 0));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!self.to)
			rdma_disconnect(id);
		close_connection(c);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: errx(1, "the event %s", rdma_event_str(type));
	}
}

/* Handles an event; false: there is none. */
static bool take_cm_event(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(self.channel, &event)) {
		if (errno != EAGAIN)
			err(1, "rdma_get_cm_event");
		return false;
	}
	type = event->event;
	id = event->id;
	if (event->status)
		errx(1, "%s: status %d", rdma_event_str(type), event->status);
	rdma_ack_cm_event(event);
	handle_cm_event(type, id);
	return true;
}

static void finish_round(struct connection *c)
{
	if (++c->rounds == 1 && ++self.connected < self.count) {
		if (self.begun < self.count)
			begin();
	} else if (c->rounds == 1) {
		client_tell("connected", self.start);
		for (uint32_t i = 0; i < self.count; i++)
			send_message(&self.connections[i], message_seed(i, 1));
	} else {
		if (++self.repeated == self.count)
			client_tell("repeated", self.start);
		if (rdma_disconnect(c->id))
			err(1, "rdma_disconnect");
	}
}

static void take_message(struct connection *c, struct message *message)
{
	uint32_t expected = message_seed(c->index, c->rounds) + 1;

	message_check(message, self.to ? &expected : NULL);
	if (!self.to)
		send_message(c, message->seed + 1);
	post_recv(message);
	if (self.to)
		finish_round(c);
}

static bool take_completions(void)
{
	struct ibv_wc wc[POLLED];
	int n = self.cq ? ibv_poll_cq(self.cq, POLLED, wc) : 0;

	if (n < 0)
		errx(1, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		/* A connection may end before the acknowledgement of its last message arrives. */
		if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc[i].status)
			errx(1, "a completion with the status %s", ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode == IBV_WC_RECV)
			take_message(find_connection(wc[i].qp_num),
				     (struct message *)(uintptr_t)wc[i].wr_id);
	}
	return n;
}

static void rearm(void)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(self.completions, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(self.cq, 0))
		err(1, "ibv_req_notify_cq");
}

static void sleep_for_event(void)
{
	struct pollfd fds[] = {
		{.fd = self.channel->fd, .events = POLLIN},
		{.fd = self.completions ? self.completions->fd : -1, .events = POLLIN},
	};

	if (self.cq)
		rearm();
	if (!take_completions() && poll(fds, 2, -1) < 0 && errno != EINTR)
		err(1, "poll");
}

static void run(void)
{
	while (self.closed < self.count) {
		bool busy = take_completions();

		busy |= take_cm_event();
		if (!busy)
			sleep_for_event();
	}
}

static void serve(struct sockaddr_in *address, uint32_t count)
{
	struct rdma_cm_id *listener;

	make_channel();
	make_tables(count);
	if (rdma_create_id(self.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)address) || rdma_listen(listener, BACKLOG))
		err(1, "cannot listen by rdma_cm");
	server_listens(rdma_get_src_port(listener));
	run();
	if (rdma_destroy_id(listener))
		err(1, "rdma_destroy_id");
	destroy_objects();
}

static void connect_all(struct sockaddr_in *address, uint32_t count)
{
	make_channel();
	make_tables(count);
	self.to = address;
	self.start = seconds_now();
	while (self.begun < count && self.begun < CONNECT_WINDOW)
		begin();
	run();
	client_tell("closed", self.start);
	destroy_objects();
}

const struct transport transport_rdma = {.name = "rdma", .serve = serve, .connect = connect_all};
