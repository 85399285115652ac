/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One of many processes of a host, with RC connections to several members of the other host:
 *
 * member -g GID_INDEX -d DIR -i INDEX               waits for connections at DIR/INDEX
 * member -g GID_INDEX -d DIR -i INDEX -n MEMBERS [-r ROUNDS]
 *      connects, and reconnects, to CONNECTIONS members from INDEX on, modulo MEMBERS
 *
 * It ends after ROUNDS rounds of each connection, at SIGTERM, or with exit status 1 at any error.
 * The death of another member is no error.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "connection.h"

#define CONNECTIONS 16

/* A passive member may accept a new connection before it notices the end of the old one. */
#define PLACES (2 * CONNECTIONS)

#define TICK_MS 200 /* between two checks of connections without events */

static struct {
	uint8_t gid_index;
	const char *dir;
	uint32_t index;
	uint32_t members; /* 0 = this member is passive */
	uint64_t rounds;  /* 0 = until SIGTERM */
} options;

static struct device dev;
static struct connection connections[PLACES];
static int listener = -1;
static volatile sig_atomic_t stop;

static uint64_t total_rounds;
static uint32_t total_lost; /* connections whose peer ended first */

/* --- Meeting */

static struct sockaddr_un address_of(uint32_t index)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%u", options.dir, index);
	return address;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

static void start_listening(void)
{
	struct sockaddr_un address = address_of(options.index);

	/* A killed member leaves its socket file. */
	unlink(address.sun_path);
	listener = new_socket();
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, PLACES))
		err(1, "%s", address.sun_path);
}

static void try_to_connect(uint32_t n)
{
	struct sockaddr_un address = address_of((options.index + n) % options.members);
	int fd = new_socket();

	if (!connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		connection_open(&connections[n], fd, true);
		return;
	}
	/* The other member does not listen yet, has ended, or has a full backlog. */
	if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN)
		err(1, "%s", address.sun_path);
	close(fd);
}

static struct connection *free_connection(void)
{
	for (uint32_t i = 0; i < PLACES; i++)
		if (!connections[i].qp)
			return &connections[i];
	return NULL;
}

static void accept_one(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		connection_open(free_connection(), fd, false);
	else if (errno != EAGAIN && errno != ECONNABORTED)
		err(1, "accept");
}

/* --- Work */

static void end_connection(struct connection *c)
{
	total_rounds += c->rounds;
	connection_close(c);
}

static void drain_cq(void)
{
	struct ibv_wc wcs[16];
	int n;

	while ((n = ibv_poll_cq(dev.cq, 16, wcs)) > 0) {
		for (int i = 0; i < n; i++) {
			struct connection *c = &connections[connection_index(wcs[i].wr_id)];

			/* Completions of a destroyed QP are ignored. */
			if (c->qp && c->generation == connection_generation(wcs[i].wr_id))
				connection_complete(c, &wcs[i]);
		}
	}
	if (n < 0)
		errx(1, "ibv_poll_cq");
}

static bool may_begin(const struct connection *c)
{
	return !stop && (!options.rounds || c->rounds < options.rounds);
}

/* Active side: begins the next rounds. True: all connections have finished. */
static bool begin_rounds(void)
{
	bool ended = true;

	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &connections[i];

		if (c->qp && connection_idle(c) && may_begin(c))
			connection_begin_round(c);
		/* After SIGTERM unconnected ones count as finished, too. */
		ended = ended && (connection_idle(c) || (stop && !c->introduced));
	}
	return ended;
}

static void check_connections(void)
{
	static bool told;
	uint32_t introduced = 0;

	for (uint32_t i = 0; i < PLACES; i++) {
		if (connections[i].qp)
			connection_check(&connections[i]);
		else if (i < CONNECTIONS && options.members && !stop)
			try_to_connect(i);
		introduced += connections[i].qp && connections[i].introduced;
	}
	if (!told && introduced == CONNECTIONS) {
		puts("connected");
		fflush(stdout);
		told = true;
	}
}

/* Waits for an event, at most TICK_MS. */
static void wait_for_events(void)
{
	struct pollfd fds[PLACES + 2];
	struct connection *of[PLACES];
	uint32_t n = 0;

	for (uint32_t i = 0; i < PLACES; i++) {
		if (!connections[i].qp)
			continue;
		of[n] = &connections[i];
		fds[n++] = (struct pollfd){connections[i].fd, POLLIN};
	}
	fds[n] = (struct pollfd){dev.channel->fd, POLLIN};
	fds[n + 1] = (struct pollfd){free_connection() ? listener : -1, POLLIN};
	if (poll(fds, n + 2, TICK_MS) < 0) {
		if (errno != EINTR)
			err(1, "poll");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (fds[i].revents && !connection_hear(of[i])) {
			end_connection(of[i]);
			total_lost++;
		}
	}
	if (fds[n].revents)
		device_rearm(&dev);
	if (fds[n + 1].revents)
		accept_one();
}

static void run(void)
{
	time_t looked = 0;

	for (;;) {
		drain_cq();
		if (options.members ? begin_rounds() : stop)
			return;
		if (time(NULL) != looked) {
			check_connections();
			looked = time(NULL);
		}
		wait_for_events();
	}
}

/* --- */

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void usage(void)
{
	fputs("usage: member -g GID_INDEX -d DIR -i INDEX [-n MEMBERS [-r ROUNDS]]\n", stderr);
	exit(2);
}

static void parse(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "g:d:i:n:r:")) != -1;) {
		switch (c) {
		case 'g': options.gid_index = (uint8_t)atoi(optarg); break;
		case 'd': options.dir = optarg; break;
		case 'i': options.index = (uint32_t)atoi(optarg); break;
		case 'n': options.members = (uint32_t)atoi(optarg); break;
		case 'r': options.rounds = strtoull(optarg, NULL, 10); break;
		default: usage();
		}
	}
	if (!options.dir || optind < argc)
		usage();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	signal(SIGTERM, on_signal);
	puts("SIGTERM ends this member"); /* crowd.py waits for this line before it sends one */
	fflush(stdout);
	device_open(&dev, options.gid_index, PLACES * sizeof(struct place),
		    PLACES * CONNECTION_DEPTH);
	memset(dev.memory, 0, PLACES * sizeof(struct place));
	for (uint32_t i = 0; i < PLACES; i++)
		connections[i] = (struct connection){
			.dev = &dev, .index = i, .place = (struct place *)dev.memory + i};
	if (!options.members)
		start_listening();
	run();
	for (uint32_t i = 0; i < PLACES; i++)
		if (connections[i].qp)
			end_connection(&connections[i]);
	device_close(&dev);
	printf("%" PRIu64 " rounds, %u peers lost\n", total_rounds, total_lost);
	return 0;
}
