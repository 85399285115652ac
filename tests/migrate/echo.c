/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Echoes TCP's bytes, one connection at a time, and UDP's datagrams, both at one port: the part of
 * a machine in echo_pauses.py. It sleeps until something comes.
 */
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENER, DATAGRAMS, CONNECTION, SOCKETS };

static int bound_socket(int type, uint16_t port)
{
	const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    bind(fd, (const struct sockaddr *)&any, sizeof(any)))
		err(1, "port %u", port);
	return fd;
}

static int accept_connection(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
		err(1, "cannot accept");
	return fd;
}

/* Returns the connection, or -1: the peer has closed it. */
static int echo_bytes(int fd)
{
	char bytes[2048];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	if (got > 0 && write(fd, bytes, (size_t)got) == got)
		return fd;
	close(fd);
	return -1;
}

static void echo_datagram(int fd)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	char bytes[2048];
	ssize_t got = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_len);

	/* The sender does not wait for a datagram that is lost. */
	if (got >= 0)
		(void)sendto(fd, bytes, (size_t)got, 0, (struct sockaddr *)&from, from_len);
}

int main(int argc, char **argv)
{
	struct pollfd sockets[SOCKETS] = {[CONNECTION] = {.fd = -1, .events = POLLIN}};
	uint16_t port;

	if (argc != 2)
		errx(2, "usage: echo PORT");
	port = (uint16_t)atoi(argv[1]);
	sockets[LISTENER] =
		(struct pollfd){.fd = bound_socket(SOCK_STREAM, port), .events = POLLIN};
	sockets[DATAGRAMS] =
		(struct pollfd){.fd = bound_socket(SOCK_DGRAM, port), .events = POLLIN};
	if (listen(sockets[LISTENER].fd, 1))
		err(1, "cannot listen");
	for (;;) {
		if (poll(sockets, SOCKETS, -1) < 0)
			err(1, "cannot wait");
		if (sockets[DATAGRAMS].revents)
			echo_datagram(sockets[DATAGRAMS].fd);
		if (sockets[CONNECTION].fd >= 0 && sockets[CONNECTION].revents)
			sockets[CONNECTION].fd = echo_bytes(sockets[CONNECTION].fd);
		if (sockets[CONNECTION].fd < 0 && sockets[LISTENER].revents)
			sockets[CONNECTION].fd = accept_connection(sockets[LISTENER].fd);
	}
}
