/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP over loopback, both ends polling: what a program without RDMA has at its best. */
#include "limits.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 20000

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

/* Two ends of one connection. */
static void connect_pair(int fds[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len) ||
	    connect(fds[0], (struct sockaddr *)&at, len))
		err(1, "TCP over loopback");
	fds[1] = no_delay(accept(listener, NULL, NULL));
	no_delay(fds[0]);
	close(listener);
}

double limit_tcp(const struct bench_cpus *cpus, size_t size)
{
	struct end own = {.size = size, .message = calloc(1, size)}, other = own;
	double start = 0;
	pid_t child;
	int fds[2];

	if (!own.message)
		err(1, "calloc");
	connect_pair(fds);
	own.fd = fds[0];
	other.fd = fds[1];
	child = bench_child(cpus, reply, &other);
	for (int i = -ROUNDS / 10; i < ROUNDS; i++) {
		if (i == 0)
			start = bench_now();
		send_all(&own);
		receive_all(&own);
	}
	start = bench_now() - start;
	bench_end(child);
	close(fds[0]);
	close(fds[1]);
	free(own.message);
	return start / ROUNDS / 2;
}
