/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect_many: the message that each connection carries in both directions, and one file for each
 * transport. */
#ifndef URXE_TEST_CONNECT_MANY_H
#define URXE_TEST_CONNECT_MANY_H

#include <netinet/in.h>
#include <stdint.h>

/* Connections that a client sets up at a time. */
#define CONNECT_WINDOW 256

#define MESSAGE_CONTENTS 2000

struct message {
	uint32_t seed; /* of the contents (pattern.h) */
	uint8_t contents[MESSAGE_CONTENTS];
};

/* The client's message of a connection; the answer has the next seed. */
void message_fill(struct message *message, uint32_t seed);
/* Exits if the contents are wrong, or if a seed is expected and the message has another one. */
void message_check(const struct message *message, const uint32_t *expected);
uint32_t message_seed(uint32_t connection, unsigned int round);

/* Prints the port for the client, once the server listens. */
void server_listens(in_port_t port);
/* Prints the seconds from the start until something was done for all connections. */
void client_tell(const char *what, double start);
double seconds_now(void);

struct transport {
	const char *name;
	/* Accepts `count` connections and answers each message, until the client has closed them
	 * all. */
	void (*serve)(struct sockaddr_in *address, uint32_t count);
	/* Sets up `count` connections that carry a message and its answer each, repeats that on
	 * all, and closes all. */
	void (*connect)(struct sockaddr_in *address, uint32_t count);
};

extern const struct transport transport_rdma, transport_tcp;

#endif
