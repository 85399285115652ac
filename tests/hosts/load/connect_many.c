/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thousands of connections by address between two processes, by rdma_cm or TCP:
 *
 * connect_many rdma|tcp listen ADDRESS COUNT         prints its port
 * connect_many rdma|tcp connect ADDRESS COUNT PORT   prints the seconds of its steps
 *
 * Each connection carries a message and its answer as soon as it is established, and again when
 * all connections are. Both sides check all contents, and exit with status 1 at any error.
 */
#include "connect_many.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pattern.h"

void message_fill(struct message *message, uint32_t seed)
{
	message->seed = seed;
	pattern_fill(message->contents, seed, MESSAGE_CONTENTS);
}

void message_check(const struct message *message, const uint32_t *expected)
{
	uint32_t wrong = pattern_differs(message->contents, message->seed, 0, MESSAGE_CONTENTS);

	if (expected && message->seed != *expected)
		errx(1, "message %u instead of %u", message->seed, *expected);
	if (wrong)
		errx(1, "%u bytes of message %u are wrong", wrong, message->seed);
}

uint32_t message_seed(uint32_t connection, unsigned int round)
{
	return (connection * 2 + round) * 2;
}

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void server_listens(in_port_t port)
{
	printf("%u\n", ntohs(port));
	fflush(stdout);
}

void client_tell(const char *what, double start)
{
	printf("%s %.6f\n", what, seconds_now() - start);
	fflush(stdout);
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !value || value > 1000000)
		errx(2, "'%s' is no number from 1 to 1,000,000", text);
	return (uint32_t)value;
}

static const struct transport *find_transport(const char *name)
{
	if (!strcmp(name, transport_rdma.name))
		return &transport_rdma;
	if (!strcmp(name, transport_tcp.name))
		return &transport_tcp;
	errx(2, "no transport '%s'", name);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	bool listens = argc == 5 && !strcmp(argv[2], "listen");

	if (!listens && (argc != 6 || strcmp(argv[2], "connect")))
		errx(2, "usage: connect_many rdma|tcp listen ADDRESS COUNT | connect ADDRESS COUNT "
			"PORT");
	if (inet_pton(AF_INET, argv[3], &address.sin_addr) != 1)
		errx(2, "'%s' is no IPv4 address", argv[3]);
	if (listens) {
		find_transport(argv[1])->serve(&address, number(argv[4]));
	} else {
		address.sin_port = htons((uint16_t)number(argv[5]));
		find_transport(argv[1])->connect(&address, number(argv[4]));
	}
	return 0;
}
