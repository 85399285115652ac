/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gap -d DEVICE -g GID_INDEX -p PORT [HOST]
 *
 * WRITEs on several reliable connections from the client to the server. The client prints "running"
 * when all connections have had completions. At SIGTERM it prints the longest time in seconds that
 * any of the connections had no completion, and both sides end.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "lib/two.h"

#define CONNECTIONS 8
#define WINDOW      4 /* outstanding WRITEs of a connection */
#define SIZE        4096

struct connection {
	struct endpoint ep;
	double at;  /* time of the last completion, as of bench_now() */
	double gap; /* longest time between two completions */
	uint64_t completions;
};

static struct connection connections[CONNECTIONS];
static volatile sig_atomic_t stop;

static void handle_signal(int number)
{
	(void)number;
	stop = true;
}

static void open_connections(int fd, uint8_t gid_index, const char *device)
{
	const struct endpoint_attr attr = {.device = device,
					   .type = IBV_QPT_RC,
					   .gid_index = gid_index,
					   .mtu = IBV_MTU_1024,
					   .size = SIZE};

	for (int i = 0; i < CONNECTIONS; i++)
		endpoint_open(&connections[i].ep, &attr, fd);
}

static void post_write(struct endpoint *ep)
{
	struct ibv_sge sge = {.addr = (uintptr_t)ep->memory, .length = SIZE, .lkey = ep->mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .wr.rdma = {ep->remote_addr, ep->rkey}};

	if (ibv_post_send(ep->qp, &wr, &bad))
		err(1, "ibv_post_send");
}

static void begin_writes(void)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		connections[i].at = bench_now();
		for (int n = 0; n < WINDOW; n++)
			post_write(&connections[i].ep);
	}
}

static void note_time(struct connection *c)
{
	const double now = bench_now();

	if (now - c->at > c->gap)
		c->gap = now - c->at;
	c->at = now;
}

static void poll_connection(struct connection *c)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(c->ep.cq, 1, &wc);

	if (!n)
		return;
	if (n < 0 || wc.status)
		errx(1, "completion status %s", ibv_wc_status_str(wc.status));
	note_time(c);
	c->completions++;
	post_write(&c->ep);
}

static bool all_have_completions(void)
{
	int i = 0;

	while (i < CONNECTIONS && connections[i].completions)
		i++;
	return i == CONNECTIONS;
}

/* Returns the longest gap of all connections since each had a completion. */
static double run_writes(void)
{
	bool running = false;
	double longest = 0;

	begin_writes();
	while (!stop) {
		for (int i = 0; i < CONNECTIONS; i++)
			poll_connection(&connections[i]);
		if (running || !all_have_completions())
			continue;
		running = true;
		for (int i = 0; i < CONNECTIONS; i++)
			connections[i].gap = 0;
		puts("running");
		fflush(stdout);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		note_time(&connections[i]);
		if (connections[i].gap > longest)
			longest = connections[i].gap;
	}
	return longest;
}

int main(int argc, char **argv)
{
	const char *device = "urxe0", *port = "0", *host;
	uint8_t gid_index = 0;
	char byte = 0;
	int opt, fd;

	while ((opt = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (opt) {
		case 'd': device = optarg; break;
		case 'g': gid_index = (uint8_t)atoi(optarg); break;
		case 'p': port = optarg; break;
		default: return 2;
		}
	}
	host = argv[optind];
	signal(SIGTERM, handle_signal);
	fd = exchange_open(host, port);
	open_connections(fd, gid_index, device);
	if (host) {
		printf("%.6f\n", run_writes());
		exchange_send(fd, &byte, sizeof(byte));
	} else {
		exchange_recv(fd, &byte, sizeof(byte));
	}
	return 0;
}
