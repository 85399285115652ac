/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/state_query.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/unix_packet.h"
#include "urxed/report/control.h"

/* A batch of at most UNIX_PACKET_FDS_MAX processes, with a socket pair for each: the client gets
 * one end, the process the other, on which it answers the client directly. Batches keep the number
 * of the daemon's descriptors small. */
struct batch {
	struct control_processes packet; /* to the client */
	struct session *sessions[UNIX_PACKET_FDS_MAX];
	int clients[UNIX_PACKET_FDS_MAX], processes[UNIX_PACKET_FDS_MAX]; /* of the socket pairs */
};

/* Makes socket pairs for a batch of sessions, the first of which is s. Returns the first session of
 * the next batch; NULL: none is left. */
static struct session *open_sockets(struct batch *b, struct session *s)
{
	int ends[2];

	b->packet = (struct control_processes){.version = CONTROL_VERSION};
	for (; s && b->packet.n < UNIX_PACKET_FDS_MAX; s = s->next) {
		s->asked = false;
		if (s->closed || !s->port.dev)
			continue;
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
			/* The next batch can try again, because the daemon closes the descriptors
			 * of this one before. */
			if (b->packet.n)
				return s;
			continue;
		}
		/*
		 * After this the client cannot send, so the queue of the process's end stays empty.
		 */
		shutdown(ends[1], SHUT_RD);
		b->sessions[b->packet.n] = s;
		b->clients[b->packet.n] = ends[0];
		b->processes[b->packet.n] = ends[1];
		b->packet.ports[b->packet.n++] = s->port.number;
	}
	return s;
}

/*
 * Sends one end of each socket pair of the batch to the client, and then the other end to the
 * process. When the daemon closes its copies of the client's ends, no process can have sent
 * anything on a pair yet. This order matters, because closing a socket whose queue has descriptors
 * of a process may block.
 */
static void ask(struct batch *b, int client)
{
	bool sent =
		!unix_packet_send(client, &b->packet, sizeof(b->packet), b->clients, b->packet.n);
	uint32_t i;

	for (i = 0; i < b->packet.n; i++)
		close(b->clients[i]);
	for (i = 0; i < b->packet.n; i++) {
		b->sessions[i]->asked =
			sent && !vnic_server_query_state(b->sessions[i]->conn, b->processes[i]);
		close(b->processes[i]);
	}
}

void state_query_send(struct sessions *sessions, int client)
{
	struct session *s = sessions->list;
	struct batch b;

	while (s) {
		s = open_sockets(&b, s);
		if (b.packet.n)
			ask(&b, client);
	}
}
