/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many senders WRITE to one receiver at the same time:
 *
 * incast listen ADDRESS COUNT              prints its port; ends after COUNT connections
 * incast connect ADDRESS PORT FIRST COUNT  reads a line "START SECONDS" after it has printed
 *                                          "connected"; prints the bytes of each connection, and
 *                                          disconnects at the end of its standard input
 *
 * START is a time of CLOCK_MONOTONIC. Between START + SECONDS / 4 and START + SECONDS the sender
 * counts the bytes of completed WRITEs. Sender number i WRITEs contents of its own; at the end the
 * receiver compares them.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>

#include "pattern.h"

#define SIZE       65536 /* of a WRITE, and of each connection's memory */
#define DEPTH      4     /* outstanding WRITEs of a connection */
#define TIMEOUT_MS 20000
#define POLLED     32

/* Private data of the receiver's answer. */
struct target {
	uint64_t address;
	uint32_t rkey;
};

struct connection {
	struct rdma_cm_id *id;
	struct target target;
	uint8_t *memory;
	uint32_t seed; /* of the contents; the receiver learns it from the last request */
	unsigned int outstanding;
	uint64_t bytes; /* completed while they count */
	bool ended;
};

static struct {
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *completions;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct connection *connections;
	uint32_t first, count;
	uint32_t begun, established, ended, closed;
	double start, count_from, until;
} self;

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- Objects */

static void make_memory(uint32_t count)
{
	self.count = count;
	self.channel = rdma_create_event_channel();
	self.connections = calloc(count, sizeof(*self.connections));
	self.memory = calloc(count, SIZE);
	if (!self.channel || !self.connections || !self.memory)
		err(1, "memory");
}

static void make_objects(struct ibv_context *verbs)
{
	self.pd = ibv_alloc_pd(verbs);
	self.completions = ibv_create_comp_channel(verbs);
	if (!self.pd || !self.completions || fcntl(self.completions->fd, F_SETFL, O_NONBLOCK))
		err(1, "cannot create a protection domain and a channel");
	self.cq = ibv_create_cq(verbs, (int)(self.count * (DEPTH + 1)), NULL, self.completions, 0);
	self.mr = ibv_reg_mr(self.pd, self.memory, (size_t)self.count * SIZE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!self.cq || !self.mr || ibv_req_notify_cq(self.cq, 0))
		err(1, "cannot create the queues");
}

static struct connection *new_connection(struct rdma_cm_id *id)
{
	struct connection *c = &self.connections[self.begun];

	if (self.begun == self.count)
		errx(1, "one more connection than expected");
	*c = (struct connection){.id = id,
				 .memory = self.memory + (size_t)self.begun * SIZE,
				 .seed = self.first + self.begun};
	self.begun++;
	id->context = c;
	return c;
}

static void make_qp(struct connection *c)
{
	struct ibv_qp_init_attr init = {.qp_context = c,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH + 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	if (!self.pd)
		make_objects(c->id->verbs);
	init.send_cq = init.recv_cq = self.cq;
	if (rdma_create_qp(c->id, self.pd, &init))
		err(1, "rdma_create_qp");
}

/* --- Events of rdma_cm */

static void accept_connection(struct rdma_cm_id *id)
{
	struct connection *c = new_connection(id);
	struct target target;
	struct rdma_conn_param param = {.private_data = &target,
					.private_data_len = sizeof(target)};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)c}, *bad;

	make_qp(c);
	target = (struct target){.address = (uintptr_t)c->memory, .rkey = self.mr->rkey};
	errno = ibv_post_recv(id->qp, &wr, &bad);
	if (errno || rdma_accept(id, &param))
		err(1, "rdma_accept");
}

static void connect_to_receiver(struct connection *c)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	make_qp(c);
	if (rdma_connect(c->id, &param))
		err(1, "rdma_connect");
}

static void close_connection(struct connection *c)
{
	rdma_destroy_qp(c->id);
	if (rdma_destroy_id(c->id))
		err(1, "rdma_destroy_id");
	self.closed++;
}

static void handle_cm_event(enum rdma_cm_event_type type, struct rdma_cm_id *id)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, TIMEOUT_MS))
			err(1, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: connect_to_receiver(id->context); break;
	case RDMA_CM_EVENT_CONNECT_REQUEST: accept_connection(id); break;
	case RDMA_CM_EVENT_ESTABLISHED: self.established++; break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		close_connection(id->context);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: errx(1, "the event %s", rdma_event_str(type));
	}
}

static void take_cm_event(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	struct connection *c;

	if (rdma_get_cm_event(self.channel, &event))
		err(1, "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	c = id->context;
	if (event->status)
		errx(1, "%s: status %d", rdma_event_str(type), event->status);
	if (type == RDMA_CM_EVENT_ESTABLISHED &&
	    event->param.conn.private_data_len >= sizeof(c->target))
		memcpy(&c->target, event->param.conn.private_data, sizeof(c->target));
	rdma_ack_cm_event(event);
	handle_cm_event(type, id);
}

/* --- WRITEs */

/* The last request of a connection tells the receiver which contents it has sent. */
static void post(struct connection *c, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)c->memory, SIZE, self.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)c,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(c->seed),
		.wr.rdma = {.remote_addr = c->target.address, .rkey = c->target.rkey},
	};
	struct ibv_send_wr *bad;

	errno = ibv_post_send(c->id->qp, &wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
	c->outstanding++;
}

static void check_contents(const struct connection *c)
{
	uint32_t wrong = pattern_differs(c->memory, c->seed, 0, SIZE);

	if (wrong)
		errx(1, "%u bytes of sender %u are wrong", wrong, c->seed);
}

static void end_connection(struct connection *c)
{
	c->ended = true;
	self.ended++;
}

static void written(struct connection *c)
{
	double now = seconds_now();

	c->outstanding--;
	if (now >= self.count_from && now < self.until)
		c->bytes += SIZE;
	if (now < self.until)
		post(c, IBV_WR_RDMA_WRITE);
	else if (!c->outstanding && c->ended)
		rdma_disconnect(c->id);
	else if (!c->outstanding) {
		end_connection(c);
		post(c, IBV_WR_RDMA_WRITE_WITH_IMM);
	}
}

static void take_completions(void)
{
	struct ibv_wc wc[POLLED];
	int n;

	while ((n = self.cq ? ibv_poll_cq(self.cq, POLLED, wc) : 0) > 0)
		for (int i = 0; i < n; i++) {
			struct connection *c = (struct connection *)(uintptr_t)wc[i].wr_id;

			if (wc[i].status)
				errx(1, "sender %u: a completion with the status %s", c->seed,
				     ibv_wc_status_str(wc[i].status));
			if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
				c->seed = ntohl(wc[i].imm_data);
				check_contents(c);
				end_connection(c);
			} else {
				written(c);
			}
		}
	if (n < 0)
		errx(1, "ibv_poll_cq");
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

/* Handles events until *done reaches the number of connections. */
static void run_until(const uint32_t *done)
{
	while (*done < self.count) {
		struct pollfd fds[] = {
			{.fd = self.channel->fd, .events = POLLIN},
			{.fd = self.completions ? self.completions->fd : -1, .events = POLLIN},
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (fds[0].revents)
			take_cm_event();
		if (fds[1].revents) {
			rearm();
			take_completions();
		}
	}
}

/* --- Both ends */

static void receive(struct sockaddr_in *address, uint32_t count)
{
	struct rdma_cm_id *listener;

	make_memory(count);
	if (rdma_create_id(self.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)address) ||
	    rdma_listen(listener, (int)count))
		err(1, "cannot listen by rdma_cm");
	printf("%u\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	run_until(&self.closed);
	if (self.ended != count)
		errx(1, "only %u senders ended in order", self.ended);
}

static void begin(struct sockaddr_in *to)
{
	struct rdma_cm_id *id;
	struct connection *c;

	if (rdma_create_id(self.channel, &id, NULL, RDMA_PS_TCP))
		err(1, "rdma_create_id");
	c = new_connection(id);
	pattern_fill(c->memory, c->seed, SIZE);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, TIMEOUT_MS))
		err(1, "rdma_resolve_addr");
}

static void wait_for_start(void)
{
	double seconds;
	struct timespec at;

	printf("connected\n");
	fflush(stdout);
	if (scanf("%lf %lf", &self.start, &seconds) != 2)
		errx(1, "no start");
	self.count_from = self.start + seconds / 4;
	self.until = self.start + seconds;
	at.tv_sec = (time_t)self.start;
	at.tv_nsec = (long)((self.start - (double)at.tv_sec) * 1e9);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void wait_for_end(void)
{
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static void send_all(struct sockaddr_in *address, uint32_t first, uint32_t count)
{
	make_memory(count);
	self.first = first;
	for (uint32_t i = 0; i < count; i++)
		begin(address);
	run_until(&self.established);
	wait_for_start();
	for (uint32_t i = 0; i < count; i++)
		for (int depth = 0; depth < DEPTH; depth++)
			post(&self.connections[i], IBV_WR_RDMA_WRITE);
	run_until(&self.ended);
	for (uint32_t i = 0; i < count; i++)
		printf("%" PRIu64 "\n", self.connections[i].bytes);
	wait_for_end();
	run_until(&self.closed);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	if (argc < 4 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		errx(2, "usage: incast listen ADDRESS COUNT | connect ADDRESS PORT FIRST COUNT");
	if (!strcmp(argv[1], "listen") && argc == 4) {
		receive(&address, (uint32_t)atoi(argv[3]));
	} else if (!strcmp(argv[1], "connect") && argc == 6) {
		address.sin_port = htons((uint16_t)atoi(argv[3]));
		send_all(&address, (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
	} else {
		errx(2, "incast %s takes other arguments", argv[1]);
	}
	return 0;
}
