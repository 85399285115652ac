/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event channels of rdma_cm. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "cm.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

/* Resolves an address, which raises an event. */
static struct rdma_cm_id *resolve_own_address(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_create(channel, RDMA_PS_TCP);
	union cm_addr own = cm_own(1);

	MUST(!rdma_resolve_addr(id, NULL, &own.any, WAIT_MS));
	return id;
}

static void test_nonblocking_channel_returns_eagain(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	rule_errno(EAGAIN, cm_errno(rdma_get_cm_event(channel, &event)),
		   "a non-blocking channel without events returns EAGAIN");
	rule(!poll(&fd, 1, 0), "poll reports no event");
	id = resolve_own_address(channel);
	rule(poll(&fd, 1, WAIT_MS) == 1 && fd.revents == POLLIN, "poll reports an event");
	MUST(!rdma_get_cm_event(channel, &event));
	rule(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && event->id == id,
	     "the event is ADDR_RESOLVED of the ID");
	rule_errno(EAGAIN, cm_errno(rdma_get_cm_event(channel, &event)), "the event arrives once");
	rule(!poll(&fd, 1, 0), "poll reports no further event");
}

static void test_poll_reports_events(void)
{
	struct rdma_event_channel *channel = cm_open();
	struct epoll_event event = {.events = EPOLLIN};
	int epoll_fd = epoll_create1(0);

	MUST(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, channel->fd, &event));
	rule(!epoll_wait(epoll_fd, &event, 1, 0), "epoll reports no event before the first one");
	resolve_own_address(channel);
	resolve_own_address(channel);
	rule(epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 1, "epoll reports two pending events");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	rule(epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 1, "epoll reports the second event");
	MUST(!cm_await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	rule(!epoll_wait(epoll_fd, &event, 1, 0), "epoll reports no further event");
}

static void *wait_for_one_event(void *arg)
{
	struct rdma_cm_event *event;

	MUST(!rdma_get_cm_event(arg, &event));
	MUST(!rdma_ack_cm_event(event));
	return NULL;
}

/* Several threads wait for events, and no event is lost. */
static void test_waiting_threads_lose_no_event(void)
{
	enum { THREADS = 4 };
	struct rdma_event_channel *channel = cm_open();
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, wait_for_one_event, channel));
	for (int i = 0; i < THREADS; i++)
		resolve_own_address(channel);
	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_join(threads[i], NULL));
	rule(cm_quiet(channel), "each waiting thread gets one event");
}

static void test_migration_moves_pending_events(void)
{
	struct rdma_event_channel *from = cm_open(), *to = cm_open();
	struct rdma_cm_id *id = resolve_own_address(from), *other = resolve_own_address(from);

	rule_errno(0, cm_errno(rdma_migrate_id(id, to)), "an ID can migrate to another channel");
	rule(id->channel == to, "a migrated ID names its new channel");
	rule(!cm_await(to, RDMA_CM_EVENT_ADDR_RESOLVED), "pending events migrate with the ID");
	rule(!cm_await(from, RDMA_CM_EVENT_ADDR_RESOLVED),
	     "events of other IDs stay in the old channel");
	rule(cm_quiet(from) && cm_quiet(to), "each event arrives once");
	rule_errno(0, cm_errno(rdma_resolve_route(id, WAIT_MS)),
		   "a migrated ID can resolve a route");
	rule(!cm_await(to, RDMA_CM_EVENT_ROUTE_RESOLVED), "later events arrive in the new channel");
	rule_errno(0, cm_errno(rdma_destroy_id(id)), "a migrated ID can be destroyed");
	rule_errno(0, cm_errno(rdma_destroy_id(other)),
		   "an ID of the old channel can be destroyed");
}

/* A server moves each connection to a channel of its own. */
static void test_connection_moves_to_a_new_channel(void)
{
	struct rdma_event_channel *other = cm_open();
	struct cm_pair pair;

	cm_pair_open(&pair);
	rule_errno(0, cm_errno(rdma_migrate_id(pair.server, other)), "a connected ID can migrate");
	MUST(!rdma_disconnect(pair.client));
	rule(!cm_await(other, RDMA_CM_EVENT_DISCONNECTED),
	     "the event DISCONNECTED arrives in the new channel");
	rule_errno(0, cm_errno(rdma_disconnect(pair.server)), "a migrated ID can disconnect");
	rule(!cm_await(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED),
	     "the peer of a migrated ID gets the event DISCONNECTED");
	rule(!cm_await(other, RDMA_CM_EVENT_TIMEWAIT_EXIT),
	     "the event TIMEWAIT_EXIT arrives in the new channel");
	rule(cm_quiet(pair.server_channel),
	     "the old channel gets no event of a migrated connection");
}

static void test_listener_moves_to_a_new_channel(void)
{
	struct rdma_event_channel *mine = cm_open(), *theirs = cm_open(), *other = cm_open();
	struct rdma_cm_id *listener = cm_listener(theirs, RDMA_PS_TCP, 2);
	struct rdma_cm_id *client = cm_client(mine, listener), *server;
	struct rdma_conn_param param = cm_param(0);

	rule_errno(0, cm_errno(rdma_migrate_id(listener, other)), "a listener can migrate");
	MUST(!rdma_connect(client, &param));
	server = cm_request(other);
	rule(server->channel == other, "a new request belongs to the listener's new channel");
	cm_make_qp(server);
	MUST(!rdma_accept(server, &param));
	MUST(!cm_await(mine, RDMA_CM_EVENT_ESTABLISHED));
	rule(!cm_await(other, RDMA_CM_EVENT_ESTABLISHED),
	     "the connection's events arrive in the new channel");
	rule(cm_quiet(theirs), "the old channel gets no event of a migrated listener");
}

const struct test cm_event_tests[] = {
	{"nonblocking", test_nonblocking_channel_returns_eagain},
	{"polling", test_poll_reports_events},
	{"waiting", test_waiting_threads_lose_no_event},
	{"migration", test_migration_moves_pending_events},
	{"moved_connection", test_connection_moves_to_a_new_channel},
	{"moved_listener", test_listener_moves_to_a_new_channel},
	{NULL, NULL},
};
