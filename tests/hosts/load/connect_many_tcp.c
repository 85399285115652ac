/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect_many by TCP: one thread, one epoll set. */
#include "connect_many.h"

#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096
#define TAKEN   64 /* events taken at a time */

struct connection {
	int fd;
	uint32_t index;
	unsigned int rounds; /* answered */
	uint32_t received;   /* bytes of the current message */
	bool connected;
	struct message message;
};

static struct {
	int epoll;
	struct connection *connections;
	uint32_t count;
	uint32_t begun, connected, repeated, closed;
	struct sockaddr_in *to; /* NULL: this is the server */
	double start;
} self;

/* Each connection needs a descriptor. */
static void raise_limit(uint32_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < count + 64)
		errx(1, "%u connections need as many descriptors (ulimit -n)", count);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void make_objects(uint32_t count)
{
	raise_limit(count);
	self.epoll = epoll_create1(0);
	self.connections = calloc(count, sizeof(*self.connections));
	self.count = count;
	if (self.epoll < 0 || !self.connections)
		err(1, "cannot create an epoll set");
}

static void watch(int fd, struct connection *c, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};

	if (epoll_ctl(self.epoll, operation, fd, &event))
		err(1, "epoll_ctl");
}

static struct connection *new_connection(int fd)
{
	struct connection *c = &self.connections[self.begun];

	if (self.begun == self.count)
		errx(1, "one more connection than expected");
	c->fd = fd;
	c->index = self.begun++;
	return c;
}

static void begin(void)
{
	struct connection *c = new_connection(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));

	if (c->fd < 0)
		err(1, "socket");
	if (connect(c->fd, (struct sockaddr *)self.to, sizeof(*self.to)) && errno != EINPROGRESS)
		err(1, "connect");
	watch(c->fd, c, EPOLL_CTL_ADD, EPOLLOUT);
}

static void send_message(struct connection *c, uint32_t seed)
{
	message_fill(&c->message, seed);
	if (write(c->fd, &c->message, sizeof(c->message)) != sizeof(c->message))
		err(1, "write");
}

static void close_connection(struct connection *c)
{
	close(c->fd);
	self.closed++;
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
		close_connection(c);
	}
}

static void take_message(struct connection *c)
{
	uint32_t expected = message_seed(c->index, c->rounds) + 1;

	c->received = 0;
	message_check(&c->message, self.to ? &expected : NULL);
	if (self.to)
		finish_round(c);
	else
		send_message(c, c->message.seed + 1);
}

static void receive(struct connection *c)
{
	ssize_t n =
		read(c->fd, (char *)&c->message + c->received, sizeof(c->message) - c->received);

	if (n < 0 && errno != EAGAIN)
		err(1, "read");
	if (!n && self.to)
		errx(1, "the server has closed a connection");
	if (!n)
		close_connection(c);
	if (n > 0)
		c->received += (uint32_t)n;
	if (c->received == sizeof(c->message))
		take_message(c);
}

static void handle_event(struct connection *c, int listener)
{
	if (!c) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

		if (fd < 0)
			err(1, "accept");
		watch(fd, new_connection(fd), EPOLL_CTL_ADD, EPOLLIN);
	} else if (self.to && !c->connected) {
		c->connected = true;
		watch(c->fd, c, EPOLL_CTL_MOD, EPOLLIN);
		send_message(c, message_seed(c->index, 0));
	} else {
		receive(c);
	}
}

static void run(int listener)
{
	struct epoll_event events[TAKEN];

	while (self.closed < self.count) {
		int n = epoll_wait(self.epoll, events, TAKEN, -1);

		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < n; i++)
			handle_event(events[i].data.ptr, listener);
	}
}

static void serve(struct sockaddr_in *address, uint32_t count)
{
	socklen_t len = sizeof(*address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	make_objects(count);
	if (listener < 0 || bind(listener, (struct sockaddr *)address, len) ||
	    listen(listener, BACKLOG) || getsockname(listener, (struct sockaddr *)address, &len))
		err(1, "cannot listen by TCP");
	watch(listener, NULL, EPOLL_CTL_ADD, EPOLLIN);
	server_listens(address->sin_port);
	run(listener);
}

static void connect_all(struct sockaddr_in *address, uint32_t count)
{
	make_objects(count);
	self.to = address;
	self.start = seconds_now();
	while (self.begun < count && self.begun < CONNECT_WINDOW)
		begin();
	run(-1);
	client_tell("closed", self.start);
}

const struct transport transport_tcp = {.name = "tcp", .serve = serve, .connect = connect_all};
