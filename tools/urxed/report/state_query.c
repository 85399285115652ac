/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/state_query.h"

#include <sys/socket.h>
#include <unistd.h>

/* The processes' ends of the sockets. */
struct users {
	uid_t uids[CONTROL_USERS];
	int fds[CONTROL_USERS];
};

/*
 * The client's end reports the PID of each sender. The client cannot send on it, so the queue of
 * the processes' end stays empty.
 */
static int open_sockets(int ends[2])
{
	const int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	shutdown(ends[1], SHUT_RD);
	if (!setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return 0;
	close(ends[0]);
	close(ends[1]);
	return -1;
}

/* Returns the socket on which the processes of a user answer, or -1. */
static int socket_of_user(struct users *users, struct control_sockets *sockets, uid_t uid)
{
	uint32_t i;
	int ends[2];

	for (i = 0; i < sockets->n; i++)
		if (users->uids[i] == uid)
			return users->fds[i];
	if (i == CONTROL_USERS || open_sockets(ends))
		return i ? users->fds[i - 1] : -1;
	sockets->fds[i] = ends[0];
	users->uids[i] = uid;
	users->fds[i] = ends[1];
	sockets->n++;
	return ends[1];
}

void state_query_send(struct sessions *sessions, struct control_sockets *sockets)
{
	struct session *s;
	struct users users;
	uint32_t i;
	int socket;

	for (s = sessions->list; s; s = s->next) {
		s->asked = false;
		if (s->gone)
			continue;
		socket = socket_of_user(&users, sockets, vnic_server_uid(s->conn));
		s->asked = socket >= 0 && !vnic_server_query_state(s->conn, socket);
	}
	for (i = 0; i < sockets->n; i++)
		close(users.fds[i]);
}
