/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The stream socket to a vfio-user client: cuts the stream into messages, and sends replies. */
#ifndef URXE_VNIC_VFIO_CONNECTION_H
#define URXE_VNIC_VFIO_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

struct connection {
	int socket;    /* -1 = closed */
	uint32_t have; /* bytes of the message that is being received */
	uint32_t n_fds;
	int fds[VFIO_USER_FDS];     /* descriptors of this message */
	int out_fd;                 /* goes with the first byte of the reply; -1: none */
	uint32_t out_len, out_sent; /* bytes of the reply, and those of them that were sent */
	union {
		struct vfio_user_header header;
		uint8_t bytes[VFIO_USER_MESSAGE_MAX];
	} in, out;
};

void connection_init(struct connection *c);
void connection_open(struct connection *c, int socket);
void connection_close(struct connection *c);

/*
 * 1: c->in and c->fds have a whole message; connection_next follows. 0: its rest has not arrived.
 * -ECONNRESET: the client closed the socket; -EPROTO: not a command of the protocol, or too many
 * descriptors.
 */
int connection_receive(struct connection *c);
/*
 * Forgets the message, and closes its descriptors. A handler that has kept one has set its entry of
 * c->fds to -1.
 */
void connection_next(struct connection *c);
/*
 * Replies with the body that lies in c->out behind the header, and with the descriptor c->out_fd,
 * which stays open; does nothing if the command asks for no reply. error: errno value, 0 = none.
 * Returns as connection_flush.
 */
int connection_reply(struct connection *c, uint32_t body, uint32_t error);
/* Sends as much of the rest of the reply as the socket takes. 0, also if it takes nothing now;
 * -ECONNRESET: the client has closed it. */
int connection_flush(struct connection *c);

static inline bool connection_is_writing(const struct connection *c)
{
	return c->out_sent < c->out_len;
}

#endif
