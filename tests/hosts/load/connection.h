/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RC connection between members of two hosts, and the rounds of messages on it.
 *
 * In each round the active side posts a WRITE and a SEND; the passive side checks both and answers
 * with a WRITE and a SEND. The active side then checks both, READs its own WRITE back, and adds 1
 * to a counter of the passive side. Each round has contents of its own, and the counter counts the
 * rounds, so an operation that is executed twice or on another connection shows.
 *
 * Both sides exchange addresses over a UNIX socket. The socket stays open, so its end shows that
 * the peer has ended. Only then may an operation fail.
 */
#ifndef URXE_TEST_CONNECTION_H
#define URXE_TEST_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

#define CONNECTION_DEPTH   8    /* sends and receives outstanding on a connection */
#define CONNECTION_LARGEST 6000 /* bytes of an operation */

/* A connection's part of the registered memory. */
struct place {
	uint8_t written[CONNECTION_LARGEST]; /* by the peer */
	uint8_t received[CONNECTION_LARGEST];
	uint8_t source[CONNECTION_LARGEST];
	uint8_t read[CONNECTION_LARGEST];
	uint64_t counter; /* the peer adds to it */
	uint64_t added;   /* result of the fetch-and-add on the peer's counter */
};

/* The message by which the sides exchange addresses. */
struct introduction {
	union ibv_gid gid;
	uint64_t place;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
	uint32_t seed; /* of the contents; chosen by the active side */
};

struct connection {
	struct device *dev;
	struct ibv_qp *qp; /* NULL = no connection */
	struct place *place;
	uint32_t index;      /* of the place */
	uint32_t generation; /* in wr_ids: distinguishes completions of successive QPs */
	int fd;              /* the UNIX socket */
	bool active;
	bool introduced;
	struct introduction peer;
	uint32_t seed;
	uint32_t psn;        /* this side's first PSN */
	uint64_t rounds;     /* finished rounds */
	uint32_t awaited;    /* outstanding completions of the round, a bit for each kind */
	bool due;            /* passive side: it has yet to answer the active side */
	time_t progress;     /* time of the last progress */
	const char *failure; /* of an operation; NULL = none */
};

/* Creates a QP; the connection owns fd from now on. The active side sends its introduction. */
void connection_open(struct connection *c, int fd, bool active);
void connection_close(struct connection *c);
/* Call when fd is readable. False: the peer has ended. */
bool connection_hear(struct connection *c);
void connection_complete(struct connection *c, const struct ibv_wc *wc);
/* Exits if the connection makes no progress, or has failed although the peer lives. */
void connection_check(const struct connection *c);
/* Whether no round is in progress, so the active side may begin one or end. */
bool connection_idle(const struct connection *c);
void connection_begin_round(struct connection *c);

/* The parts of a wr_id. */
uint32_t connection_index(uint64_t wr_id);
uint32_t connection_generation(uint64_t wr_id);

#endif
