/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * connect CPU CPU rdma|tcp COUNT: two processes on one CPU each establish COUNT connections by
 * address. With rdma, rdma_cm establishes WINDOW connections at a time, each with a QP, from
 * address resolution to the event ESTABLISHED. With tcp, connect(2) and accept(2) establish one
 * after another. Prints connections per second.
 */
#include "lib/two.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define WINDOW     32
#define BACKLOG    1024
#define TIMEOUT_MS 10000

struct end {
	unsigned int count;
	int ready[2]; /* pipe for the listener's port number */
};

static struct sockaddr_in loopback(in_port_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void tell(const struct end *end, in_port_t port)
{
	if (write(end->ready[1], &port, sizeof(port)) != sizeof(port))
		err(1, "the other process has gone");
}

static struct sockaddr_in told(const struct end *end)
{
	in_port_t port;

	if (read(end->ready[0], &port, sizeof(port)) != sizeof(port))
		errx(1, "the other process has gone");
	return loopback(port);
}

/* --- rdma_cm */

static struct rdma_event_channel *channel;
static struct ibv_cq *cq; /* of all queue pairs of a process */

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	if (!cq || rdma_create_qp(id, NULL, &init))
		err(1, "rdma_create_qp");
}

static enum rdma_cm_event_type next_event(struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(channel, &event))
		err(1, "rdma_get_cm_event");
	type = event->event;
	*id = event->id;
	if (event->status)
		errx(1, "%s: status %d", rdma_event_str(type), event->status);
	rdma_ack_cm_event(event);
	return type;
}

static void listen_rdma(void *argument)
{
	const struct end *end = argument;
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct sockaddr_in any = loopback(0);
	struct rdma_cm_id *listener, *id;

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, BACKLOG))
		err(1, "cannot listen by rdma_cm");
	tell(end, rdma_get_src_port(listener));
	for (;;)
		if (next_event(&id) == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(id);
			if (rdma_accept(id, &param))
				err(1, "rdma_accept");
		}
}

static void begin(struct sockaddr_in *to)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)to, TIMEOUT_MS))
		err(1, "rdma_resolve_addr");
}

/* Handles an event of a connection. True: the connection is established. */
static bool advance(void)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id;

	switch (next_event(&id)) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, TIMEOUT_MS))
			err(1, "rdma_resolve_route");
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(id);
		if (rdma_connect(id, &param))
			err(1, "rdma_connect");
		return false;
	case RDMA_CM_EVENT_ESTABLISHED: return true;
	default: errx(1, "an event of rdma_cm that was not to come");
	}
}

static void connect_rdma(const struct end *end, struct sockaddr_in *to)
{
	unsigned int begun = 0, done = 0;

	channel = rdma_create_event_channel();
	if (!channel)
		err(1, "rdma_create_event_channel");
	for (; begun < end->count && begun < WINDOW; begun++)
		begin(to);
	while (done < end->count) {
		if (!advance())
			continue;
		done++;
		if (begun < end->count) {
			begin(to);
			begun++;
		}
	}
}

/* --- TCP */

static void listen_tcp(void *argument)
{
	const struct end *end = argument;
	struct sockaddr_in any = loopback(0);
	socklen_t len = sizeof(any);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&any, len) ||
	    listen(listener, BACKLOG) || getsockname(listener, (struct sockaddr *)&any, &len))
		err(1, "cannot listen by TCP");
	tell(end, any.sin_port);
	for (;;)
		if (accept(listener, NULL, NULL) < 0)
			err(1, "accept");
}

static void connect_tcp(const struct end *end, struct sockaddr_in *to)
{
	for (unsigned int i = 0; i < end->count; i++)
		if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)to, sizeof(*to)))
			err(1, "connect");
}

/* Raises RLIMIT_NOFILE, because each TCP connection needs a descriptor. */
static void want_descriptors(unsigned int count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < count + 64)
		errx(1, "%u connections need as many descriptors (ulimit -n)", count);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static const struct kind {
	const char *name;
	void (*listen)(void *end);
	void (*connect)(const struct end *end, struct sockaddr_in *to);
} kinds[] = {{"rdma", listen_rdma, connect_rdma}, {"tcp", listen_tcp, connect_tcp}};

int main(int argc, char **argv)
{
	const struct kind *kind;
	struct bench_cpus cpus;
	struct sockaddr_in to;
	struct end end;
	double start;
	pid_t child;

	if (argc != 5 || !(end.count = (unsigned int)strtoul(argv[4], NULL, 10)))
		errx(2, "usage: connect CPU CPU rdma|tcp COUNT");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	kind = &kinds[!strcmp(argv[3], "tcp")];
	if (strcmp(argv[3], kind->name))
		errx(2, "connections are of rdma or tcp, not '%s'", argv[3]);
	want_descriptors(end.count);
	if (pipe(end.ready))
		err(1, "pipe");
	child = bench_child(&cpus, kind->listen, &end);
	/* So that the read below returns if the listener fails and ends. */
	close(end.ready[1]);
	bench_pin(cpus.own);
	to = told(&end);
	start = bench_now();
	kind->connect(&end, &to);
	printf("%.9g\n", end.count / (bench_now() - start));
	bench_end(child);
	return 0;
}
