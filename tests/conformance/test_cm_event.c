/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of rdma_cm's events. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

/* Something that is followed by an event. */
static struct rdma_cm_id *resolve(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	union cm_addr own = cm_own(1);

	MUST(!rdma_resolve_addr(id, NULL, &own.any, WAIT_MS));
	return id;
}

static void nonblocking(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	rule_errno(EAGAIN, cm_errno(rdma_get_cm_event(channel, &event)), "there is no event");
	rule(!poll(&fd, 1, 0), "as poll says");
	id = resolve(channel);
	rule(poll(&fd, 1, WAIT_MS) == 1 && fd.revents == POLLIN, "then there is one");
	MUST(!rdma_get_cm_event(channel, &event));
	rule(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && event->id == id, "the ID's");
	rule_errno(EAGAIN, cm_errno(rdma_get_cm_event(channel, &event)), "once");
	rule(!poll(&fd, 1, 0), "as poll says again");
}

static void polling(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct epoll_event event = {.events = EPOLLIN};
	int epoll_fd = epoll_create1(0);

	MUST(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, channel->fd, &event));
	rule(!epoll_wait(epoll_fd, &event, 1, 0), "epoll waits for an event");
	resolve(channel);
	resolve(channel);
	rule(epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 1, "tells of it");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	rule(epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 1, "and of the next");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	rule(!epoll_wait(epoll_fd, &event, 1, 0), "until there is none");
}

static void *wait_for_one(void *arg)
{
	struct rdma_cm_event *event;

	MUST(!rdma_get_cm_event(arg, &event));
	MUST(!rdma_ack_cm_event(event));
	return NULL;
}

/* Events are not lost between threads that wait for them. */
static void waiting(void)
{
	enum { THREADS = 4 };
	struct rdma_event_channel *channel = cm_open();
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, wait_for_one, channel));
	for (int i = 0; i < THREADS; i++)
		resolve(channel);
	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_join(threads[i], NULL));
	rule(cm_quiet(channel), "each thread that waits gets an event");
}

static void migration(void)
{
	struct rdma_event_channel *from = cm_open(), *to = cm_open();
	struct rdma_cm_id *id = resolve(from), *other = resolve(from);

	rule_errno(0, cm_errno(rdma_migrate_id(id, to)), "an ID goes to another channel");
	rule(id->channel == to, "and is there");
	rule(!cm_await(to, RDMA_CM_EVENT_ADDR_RESOLVED), "its events go with it");
	rule(!cm_await(from, RDMA_CM_EVENT_ADDR_RESOLVED), "the others' stay");
	rule(cm_quiet(from) && cm_quiet(to), "each is told once");
	rule_errno(0, cm_errno(rdma_resolve_route(id, WAIT_MS)), "it goes on there");
	rule(!cm_await(to, RDMA_CM_EVENT_ROUTE_RESOLVED), "and tells of it there");
	rule_errno(0, cm_errno(rdma_destroy_id(id)), "it can be destroyed");
	rule_errno(0, cm_errno(rdma_destroy_id(other)), "as the others can");
}

/* As of servers that serve each connection by a channel of its own. */
static void moved_connection(void)
{
	struct rdma_event_channel *other = cm_open();
	struct cm_pair pair;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_migrate_id(pair.server, other)), "a connection goes as well");
	MUST(!rdma_disconnect(pair.client));
	rule(!cm_await(other, RDMA_CM_EVENT_DISCONNECTED), "its end is told there");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "and agreed to");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED), "as the peer hears");
	rule(!cm_await(other, RDMA_CM_EVENT_TIMEWAIT_EXIT), "to the last");
	rule(cm_quiet(pair.server_channel), "nothing is told where it was");
}

static void moved_listener(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open(), *other = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 2);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);

	rule_errno(0, cm_errno(rdma_migrate_id(listener, other)), "a listener goes as well");
	MUST(!rdma_connect(client, &param));
	server = cm_request(other);
	rule(server->channel == other, "who comes then is there");
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(mine, RDMA_CM_EVENT_ESTABLISHED));
	rule(!cm_await(other, RDMA_CM_EVENT_ESTABLISHED), "and stays");
	rule(cm_quiet(theirs), "nothing is told where it was");
}

const struct test cm_event_tests[] = {
	{"nonblocking", nonblocking},
	{"polling", polling},
	{"waiting", waiting},
	{"migration", migration},
	{"moved_connection", moved_connection},
	{"moved_listener", moved_listener},
	{NULL, NULL},
};
