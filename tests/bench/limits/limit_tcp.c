/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP with both ends polling: the best case of a program without RDMA. */
#include "lib/laps.h"
#include "limits.h"
#include "tcp_latency.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 20000
#define LAP    100

struct end {
	int fd;
	size_t size;
	uint8_t *message;
};

static void send_all(const struct end *end)
{
	if (send(end->fd, end->message, end->size, MSG_NOSIGNAL) != (ssize_t)end->size)
		err(1, "send");
}

static void receive_all(const struct end *end)
{
	size_t got = 0;

	while (got < end->size) {
		ssize_t n = recv(end->fd, end->message + got, end->size - got, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			err(1, "recv");
		got += n > 0 ? (size_t)n : 0;
	}
}

static void reply(void *argument)
{
	for (;;) {
		receive_all(argument);
		send_all(argument);
	}
}

static int no_delay(int fd)
{
	int one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		err(1, "TCP");
	return fd;
}

/* A socket of this network namespace, or of `netns`; a socket stays in the namespace of its
 * creation. */
static int socket_in(const char *netns)
{
	int fd;

	if (netns) {
		fd = open(netns, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWNET))
			err(1, "%s", netns);
		close(fd);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	return no_delay(fd);
}

void tcp_connect_pair(int fds[2], struct in_addr address, const char *netns)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = address};
	socklen_t len = sizeof(at);
	int listener = socket_in(NULL);

	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		err(1, "TCP");
	fds[0] = socket_in(netns);
	if (connect(fds[0], (struct sockaddr *)&at, len))
		err(1, "TCP");
	fds[1] = no_delay(accept(listener, NULL, NULL));
	close(listener);
}

double tcp_latency(const struct bench_cpus *cpus, size_t size, struct in_addr address,
		   const char *netns)
{
	struct end own = {.size = size, .message = calloc(1, size)}, other = own;
	struct laps laps;
	pid_t child;
	int fds[2];

	if (!own.message)
		err(1, "calloc");
	tcp_connect_pair(fds, address, netns);
	own.fd = fds[0];
	other.fd = fds[1];
	child = bench_child(cpus, reply, &other);
	for (int i = -ROUNDS / 10; i < ROUNDS; i++) {
		if (i == 0)
			laps_start(&laps);
		else if (i > 0 && i % LAP == 0)
			laps_mark(&laps);
		send_all(&own);
		receive_all(&own);
	}
	bench_end(child);
	close(fds[0]);
	close(fds[1]);
	free(own.message);
	return laps_median(&laps) / LAP / 2;
}

double limit_tcp(const struct bench_cpus *cpus, size_t size)
{
	return tcp_latency(cpus, size, (struct in_addr){htonl(INADDR_LOOPBACK)}, NULL);
}
