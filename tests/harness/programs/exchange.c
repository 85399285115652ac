/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "exchange.h"

#include <err.h>
#include <netdb.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int accept_one(int fd, const struct addrinfo *address)
{
	int on = 1, connection;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 1))
		err(1, "cannot listen");
	connection = accept(fd, NULL, NULL);
	if (connection < 0)
		err(1, "accept");
	close(fd);
	return connection;
}

int exchange_open(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_family = AF_INET,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = host ? 0 : AI_PASSIVE};
	struct addrinfo *address;
	int fd, status = getaddrinfo(host, port, &hints, &address);

	if (status)
		errx(1, "%s:%s: %s", host ? host : "*", port, gai_strerror(status));
	fd = socket(address->ai_family, address->ai_socktype, 0);
	if (fd < 0)
		err(1, "socket");
	if (!host)
		fd = accept_one(fd, address);
	else if (connect(fd, address->ai_addr, address->ai_addrlen))
		err(1, "cannot connect to %s:%s", host, port);
	freeaddrinfo(address);
	return fd;
}

pid_t exchange_fork(int *fd)
{
	int fds[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		err(1, "socketpair");
	child = fork();
	if (child < 0)
		err(1, "fork");
	*fd = fds[!child];
	close(fds[!!child]);
	return child;
}

void exchange_join(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the other side: status %#x", status);
}

void exchange_send(int fd, const void *data, size_t size)
{
	const uint8_t *byte = data;

	for (ssize_t n; size; byte += n, size -= n) {
		n = send(fd, byte, size, MSG_NOSIGNAL);
		if (n <= 0)
			err(1, "the other side has gone");
	}
}

void exchange_recv(int fd, void *data, size_t size)
{
	uint8_t *byte = data;

	for (ssize_t n; size; byte += n, size -= n) {
		n = recv(fd, byte, size, 0);
		if (n <= 0)
			errx(1, "the other side has gone");
	}
}
