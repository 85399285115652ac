/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket(7): sockets over rdma_cm. Both ends are in this process, except in the test of a death.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

#define STREAM (1 << 20)
#define MAPPED 4096

struct sockets {
	int listener, client, server;
	union cm_addr to;
};

static int make_socket(void)
{
	int fd = rsocket(cm_own(0).any.sa_family, SOCK_STREAM, 0);

	MUST(fd >= 0);
	return fd;
}

static int socket_error(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);

	MUST(!rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
	return error;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	MUST(!rgetsockopt(fd, level, name, &value, &size));
	return value;
}

static void set_option(int fd, int level, int name, int value)
{
	MUST(!rsetsockopt(fd, level, name, &value, sizeof(value)));
}

/* The events of a socket now, or within a time limit. */
static short events_of(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	MUST(rpoll(&p, 1, ms) >= 0);
	return p.revents;
}

/* --- Connections */

static void listen_on(struct sockets *s)
{
	union cm_addr own = cm_own(0);
	socklen_t size = sizeof(s->to);

	s->listener = make_socket();
	MUST(!rbind(s->listener, &own.any, sizeof(own)));
	MUST(!rlisten(s->listener, 4));
	MUST(!rgetsockname(s->listener, &s->to.any, &size));
}

static void *connect_client(void *arg)
{
	struct sockets *s = arg;

	return rconnect(s->client, &s->to.any, sizeof(s->to)) ? NULL : s;
}

/* Connects s->client with s->server. */
static void meet(struct sockets *s)
{
	pthread_t thread;
	void *connected;

	MUST(!pthread_create(&thread, NULL, connect_client, s));
	s->server = raccept(s->listener, NULL, NULL);
	MUST(!pthread_join(thread, &connected));
	MUST(s->server >= 0 && connected);
}

static struct sockets open_sockets(void)
{
	struct sockets s = {0};

	rdma_destroy_event_channel(cm_open()); /* skips the test on a system without rdma_cm */
	listen_on(&s);
	s.client = make_socket();
	meet(&s);
	return s;
}

static void test_names_of_both_ends(void)
{
	struct sockets s = open_sockets();
	union cm_addr local = {0}, remote = {0};
	socklen_t size = sizeof(local);

	MUST(!rgetpeername(s.client, &remote.any, &size));
	rule(!memcmp(&remote.v4, &s.to.v4, sizeof(remote.v4)),
	     "the client's peer is the listener's address");
	size = sizeof(local);
	MUST(!rgetsockname(s.client, &local.any, &size));
	size = sizeof(remote);
	MUST(!rgetpeername(s.server, &remote.any, &size));
	rule(!memcmp(&remote.v4, &local.v4, sizeof(remote.v4)),
	     "the server's peer is the client's address");
	errno = 0;
	rule(rbind(make_socket(), &s.to.any, sizeof(s.to)) == -1 && errno == EADDRINUSE,
	     "the address of a listener is in use");
}

static void test_connect_without_listener_is_refused(void)
{
	struct sockets s = {0};

	rdma_destroy_event_channel(cm_open());
	listen_on(&s);
	MUST(!rclose(s.listener));
	s.client = make_socket();
	errno = 0;
	rule(rconnect(s.client, &s.to.any, sizeof(s.to)) == -1 && errno == ECONNREFUSED,
	     "a connect without a listener is refused");
	s.client = make_socket();
	MUST(!rfcntl(s.client, F_SETFL, O_NONBLOCK));
	errno = 0;
	MUST(rconnect(s.client, &s.to.any, sizeof(s.to)) == -1 && errno == EINPROGRESS);
	rule(events_of(s.client, POLLOUT, WAIT_MS) != 0, "rpoll reports the refused connect");
	rule_errno(ECONNREFUSED, socket_error(s.client), "SO_ERROR has the reason");
}

static void test_nonblocking_connect(void)
{
	struct sockets s = {0};

	rdma_destroy_event_channel(cm_open());
	listen_on(&s);
	s.client = make_socket();
	MUST(!rfcntl(s.listener, F_SETFL, O_NONBLOCK) && !rfcntl(s.client, F_SETFL, O_NONBLOCK));
	rule(rfcntl(s.client, F_GETFL) & O_NONBLOCK, "F_GETFL returns O_NONBLOCK");
	errno = 0;
	rule(raccept(s.listener, NULL, NULL) == -1 && errno == EAGAIN,
	     "without a request raccept returns EAGAIN");
	errno = 0;
	rule(rconnect(s.client, &s.to.any, sizeof(s.to)) == -1 && errno == EINPROGRESS,
	     "rconnect does not wait");
	MUST(events_of(s.listener, POLLIN, WAIT_MS) == POLLIN);
	s.server = raccept(s.listener, NULL, NULL);
	rule(s.server >= 0, "rpoll reports the request");
	rule(events_of(s.client, POLLOUT, WAIT_MS) == POLLOUT, "rpoll reports the connection");
	rule_errno(0, socket_error(s.client), "the connected socket has no error");
	rule(rsend(s.client, "x", 1, 0) == 1, "the connected socket takes data");
}

/* --- Data */

static uint8_t pattern(size_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 13);
}

static void *send_stream(void *arg)
{
	const struct sockets *s = arg;
	uint8_t *bytes = malloc(STREAM);
	size_t done = 0;

	MUST(bytes);
	for (size_t i = 0; i < STREAM; i++)
		bytes[i] = pattern(i);
	while (done < STREAM) {
		ssize_t n = rsend(s->client, bytes + done, STREAM - done, 0);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	free(bytes);
	return done == STREAM ? arg : NULL;
}

static bool receives_stream(struct sockets *s)
{
	static uint8_t part[10007];
	pthread_t thread;
	void *sent;
	size_t got = 0;
	bool same = true;

	MUST(!pthread_create(&thread, NULL, send_stream, s));
	while (got < STREAM) {
		ssize_t n = rrecv(s->server, part, sizeof(part), 0);

		MUST(n > 0);
		for (ssize_t i = 0; i < n; i++)
			same &= part[i] == pattern(got++);
	}
	MUST(!pthread_join(thread, &sent));
	return same && sent;
}

static void test_stream_keeps_bytes_in_order(void)
{
	struct sockets s = open_sockets();

	rule(receives_stream(&s), "a stream longer than the buffers arrives in order");
	rule(!events_of(s.server, POLLIN, 0), "and nothing after it");
}

static void test_flags_of_receives(void)
{
	struct sockets s = open_sockets();
	char in[16] = {0};

	errno = 0;
	rule(rrecv(s.server, in, 8, MSG_DONTWAIT) == -1 && errno == EWOULDBLOCK,
	     "MSG_DONTWAIT does not wait for data");
	MUST(rsend(s.client, "abcdefgh", 8, 0) == 8);
	rule(rrecv(s.server, in, 4, MSG_PEEK) == 4 && !memcmp(in, "abcd", 4),
	     "MSG_PEEK returns the first bytes");
	rule(rrecv(s.server, in, 16, 0) == 8 && !memcmp(in, "abcdefgh", 8),
	     "and leaves them in the socket");
	MUST(rsend(s.client, "abcd", 4, 0) == 4 && rsend(s.client, "efgh", 4, 0) == 4);
	rule(rrecv(s.server, in, 8, MSG_WAITALL) == 8 && !memcmp(in, "abcdefgh", 8),
	     "MSG_WAITALL returns the bytes of two sends");
}

/* What a full socket took arrives, and the socket takes more afterwards. */
static void test_full_socket_refuses_data(void)
{
	static uint8_t bytes[4096];
	struct sockets s = open_sockets();
	size_t sent = 0, got = 0;
	ssize_t n;

	errno = 0;
	while ((n = rsend(s.client, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	rule_errno(EWOULDBLOCK, errno, "a full socket takes no data");
	rule(!(events_of(s.client, POLLOUT, 0) & POLLOUT), "rpoll does not report room");
	while (got < sent && (n = rrecv(s.server, bytes, sizeof(bytes), 0)) > 0)
		got += (size_t)n;
	rule(got == sent, "what the socket took arrives");
	rule(events_of(s.client, POLLOUT, WAIT_MS) == POLLOUT, "a read by the peer makes room");
}

static void test_half_close(void)
{
	struct sockets s = open_sockets();
	char in[8];

	MUST(rsend(s.client, "last", 4, 0) == 4);
	rule(!rshutdown(s.client, SHUT_WR), "one direction can be shut down");
	rule(rrecv(s.server, in, 8, 0) == 4 && !rrecv(s.server, in, 8, 0),
	     "the peer gets the data, then the end");
	rule(rsend(s.server, "back", 4, 0) == 4 && rrecv(s.client, in, 8, 0) == 4,
	     "the other direction still works");
	MUST(!rclose(s.server));
	rule(!rrecv(s.client, in, 8, 0), "the peer's close ends it");
}

/* --- rpoll and rselect */

static void test_polls_mix_descriptors(void)
{
	struct sockets s = open_sockets();
	struct pollfd p[2];
	fd_set readable;
	int ends[2];
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};

	MUST(!pipe(ends));
	p[0] = (struct pollfd){.fd = s.server, .events = POLLIN};
	p[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	rule(!rpoll(p, 2, 100), "without data rpoll returns 0 after its time");
	MUST(write(ends[1], "x", 1) == 1);
	rule(rpoll(p, 2, WAIT_MS) == 1 && p[1].revents == POLLIN && !p[0].revents,
	     "rpoll reports a pipe");
	MUST(rsend(s.client, "x", 1, 0) == 1);
	FD_ZERO(&readable);
	FD_SET(s.server, &readable);
	rule(rselect(s.server + 1, &readable, NULL, NULL, &limit) == 1 &&
		     FD_ISSET(s.server, &readable),
	     "rselect reports a socket");
	rule(rpoll(p, 2, WAIT_MS) == 2, "rpoll reports a pipe and a socket");
	MUST(!rclose(s.client));
	rule(events_of(s.server, POLLIN, WAIT_MS) & POLLIN, "rpoll reports the peer's close");
}

/* A thread that waits in rpoll wakes by data that arrive later. */
static void *send_later(void *arg)
{
	const struct sockets *s = arg;

	usleep(300 * 1000);
	MUST(rsend(s->client, "x", 1, 0) == 1);
	return NULL;
}

static void test_poll_waits(void)
{
	struct sockets s = open_sockets();
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, send_later, &s));
	rule(events_of(s.server, POLLIN, WAIT_MS) == POLLIN, "rpoll waits for data");
	MUST(!pthread_join(thread, NULL));
}

/* --- Options */

static void test_queue_options(void)
{
	struct sockets s = {0};

	rdma_destroy_event_channel(cm_open());
	listen_on(&s);
	s.client = make_socket();
	set_option(s.client, SOL_RDMA, RDMA_SQSIZE, 16);
	set_option(s.client, SOL_RDMA, RDMA_RQSIZE, 16);
	set_option(s.client, SOL_RDMA, RDMA_INLINE, 0);
	set_option(s.client, SOL_SOCKET, SO_SNDBUF, 8192);
	set_option(s.client, IPPROTO_TCP, TCP_NODELAY, 1);
	meet(&s);
	rule(option(s.client, SOL_RDMA, RDMA_SQSIZE) == 16 &&
		     option(s.client, SOL_RDMA, RDMA_RQSIZE) == 16,
	     "the queues have the chosen sizes");
	rule(option(s.client, IPPROTO_TCP, TCP_NODELAY) == 1, "TCP_NODELAY is kept");
	rule(option(s.client, IPPROTO_TCP, TCP_MAXSEG) == 128 << hca.port.active_mtu,
	     "TCP_MAXSEG is the path MTU");
	rule(receives_stream(&s), "short queues transfer a stream");
}

static void test_mapped_memory(void)
{
	struct sockets s = {0};
	uint8_t *memory =
		mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	off_t offset;
	char in;

	MUST(memory != MAP_FAILED);
	rdma_destroy_event_channel(cm_open());
	listen_on(&s);
	set_option(s.listener, SOL_RDMA, RDMA_IOMAPSIZE, 4);
	s.client = make_socket();
	set_option(s.client, SOL_RDMA, RDMA_IOMAPSIZE, 4);
	meet(&s);
	offset = riomap(s.server, memory, MAPPED, PROT_WRITE, 0, 0x10000);
	rule(offset == 0x10000, "memory is mapped at the chosen offset");
	MUST(rsend(s.server, "m", 1, 0) == 1 && rrecv(s.client, &in, 1, 0) == 1);
	rule(riowrite(s.client, "directly", 8, offset + 100, 0) == 8,
	     "riowrite takes bytes for the peer's memory");
	MUST(rsend(s.client, "w", 1, 0) == 1);
	rule(rrecv(s.server, &in, 1, 0) == 1 && in == 'w' && !memcmp(memory + 100, "directly", 8),
	     "the bytes are written before the next message is received");
	rule(!riounmap(s.server, memory, MAPPED), "the mapping can be removed");
}

/* --- Ends */

static void connect_and_die(int port)
{
	struct sockets s = {0};
	uint16_t number;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(read(port, &number, sizeof(number)) == sizeof(number));
	s.to = cm_own(number);
	s.client = make_socket();
	MUST(connect_client(&s) && rsend(s.client, "x", 1, 0) == 1);
	pause();
}

static void test_death_of_the_peer_ends_the_stream(void)
{
	struct sockets s = {0};
	int port[2];
	uint16_t number;
	char in;
	pid_t child;

	MUST(!pipe(port));
	child = fork();
	MUST(child >= 0);
	if (!child) {
		connect_and_die(port[0]);
		_exit(1);
	}
	rdma_destroy_event_channel(cm_open());
	listen_on(&s);
	number = ntohs(s.to.v4.sin_port);
	MUST(write(port[1], &number, sizeof(number)) == sizeof(number));
	s.server = raccept(s.listener, NULL, NULL);
	MUST(s.server >= 0 && rrecv(s.server, &in, 1, 0) == 1);
	MUST(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	rule(events_of(s.server, POLLIN, WAIT_MS) != 0, "rpoll reports the death of the peer");
	rule(rrecv(s.server, &in, 1, 0) <= 0, "no data are received after it");
}

const struct test cm_socket_tests[] = {
	{"names", test_names_of_both_ends},
	{"refused", test_connect_without_listener_is_refused},
	{"nonblocking", test_nonblocking_connect},
	{"stream", test_stream_keeps_bytes_in_order},
	{"receive_flags", test_flags_of_receives},
	{"full", test_full_socket_refuses_data},
	{"half_close", test_half_close},
	{"mixed_polls", test_polls_mix_descriptors},
	{"waiting_poll", test_poll_waits},
	{"queues", test_queue_options},
	{"mapped", test_mapped_memory},
	{"death", test_death_of_the_peer_ends_the_stream},
	{NULL, NULL},
};
