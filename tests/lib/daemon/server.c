/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "require.h"

static const struct neigh_ops no_ops;
static const char *opened; /* run directory of the server that was opened last */

void server_open(struct server *s)
{
	memset(s, 0, sizeof(*s));
	strcpy(s->run_dir, "/tmp/urxe-test-XXXXXX");
	require(mkdtemp(s->run_dir));
	s->listen_fd = vnic_server_listen(s->run_dir);
	require(s->listen_fd >= 0);
	opened = s->run_dir;
	host_init(&s->host);
	require(!host_add_text(&s->host, "10.0.0.1/24", HOST_NO_UPLINK));
}

static void remove_file(const struct server *s, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", s->run_dir, name);
	unlink(path);
}

void server_close(struct server *s)
{
	close(s->listen_fd);
	remove_file(s, LEASE_STORE_NAME);
	remove_file(s, VNIC_SOCKET_NAME);
	require(!rmdir(s->run_dir));
}

void server_begin(struct server *s, uint64_t now)
{
	require(!lease_store_open(&s->lease_store, s->run_dir));
	neigh_init(&s->neigh, &s->host, &no_ops, NULL);
	require(!switch_init(&s->sw, &s->host, &s->neigh, s->uplinks, s->n_uplinks));
	s->sessions = (struct sessions){.epoll_fd = epoll_create1(0),
					.host = &s->host,
					.sw = &s->sw,
					.neigh = &s->neigh,
					.lease_store = &s->lease_store};
	require(s->sessions.epoll_fd >= 0);
	sessions_start(&s->sessions);
	sessions_begin_claims(&s->sessions, now);
}

void server_end(struct server *s)
{
	lease_store_close(&s->lease_store, s->run_dir, true);
	sessions_close_all(&s->sessions);
	switch_fini(&s->sw);
	neigh_fini(&s->neigh);
	close(s->sessions.epoll_fd);
}

void server_take_events(struct server *s, uint64_t now)
{
	struct session *c;

	while (!session_accept(&s->sessions, s->listen_fd))
		;
	for (c = s->sessions.list; c; c = c->next)
		session_event(&s->sessions, now, c);
	sessions_take_inboxes(&s->sessions);
}

void *server_attach_thread(void *p)
{
	struct server_process *process = p;

	process->status = vnic_driver_attach(opened, &process->who, &process->driver);
	atomic_store(&process->done, true);
	return NULL;
}

void *server_claim_thread(void *p)
{
	struct server_process *process = p;
	const struct vnic_attach_welcome was = process->who;

	process->status = vnic_driver_claim(opened, &was, NULL, &process->who, &process->driver);
	atomic_store(&process->done, true);
	return NULL;
}

void server_call(void *(*call)(void *), struct server_process *p, void (*serve)(void))
{
	pthread_t thread;

	atomic_store(&p->done, false);
	require(!pthread_create(&thread, NULL, call, p));
	while (!atomic_load(&p->done)) {
		serve();
		usleep(100);
	}
	pthread_join(thread, NULL);
}

int server_send_claim(const struct server *s, const struct server_process *p)
{
	const struct vnic_attach_hello hello = {.type = VNIC_ATTACH_HELLO,
						.version = VNIC_ATTACH_VERSION,
						.qpn_first = p->who.qpn_first,
						.token = p->who.token};
	int fd = vnic_attach_connect(s->run_dir);

	require(fd >= 0);
	require(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	return fd;
}
