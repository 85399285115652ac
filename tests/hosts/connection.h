/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RC connection of a member to one on the other host, and the rounds that run over it.
 *
 * In each round the active side WRITEs to the passive one and SENDs it a message; the passive
 * side checks both and does the same in return; then the active side checks both, READs back
 * what it wrote, and adds 1 to a counter of the passive side. Nothing of a round is done twice
 * or for another connection: each round has contents of its own, and the counter counts rounds.
 *
 * The two sides introduce each other over a UNIX socket, which stays open and so tells when
 * the other process has ended. Only then may an operation fail.
 */
#ifndef URXE_TEST_CONNECTION_H
#define URXE_TEST_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

#define CONNECTION_DEPTH   8    /* work requests of a connection, sends and receives together */
#define CONNECTION_LARGEST 6000 /* bytes of an operation */

/* A connection's part of the registered memory. */
struct place {
	uint8_t written[CONNECTION_LARGEST]; /* by the other side */
	uint8_t received[CONNECTION_LARGEST];
	uint8_t source[CONNECTION_LARGEST];
	uint8_t read[CONNECTION_LARGEST];
	uint64_t counter; /* the other side adds to it */
	uint64_t added;   /* what its counter was */
};

/* What each side tells the other. */
struct introduction {
	union ibv_gid gid;
	uint64_t place;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
	uint32_t seed; /* the active side's: of the contents */
};

struct connection {
	struct device *dev;
	struct ibv_qp *qp; /* NULL = there is no connection */
	struct place *place;
	uint32_t index;      /* of the place */
	uint32_t generation; /* tells the completions of one QP from those of an earlier one */
	int fd;              /* the UNIX socket */
	bool active;
	bool introduced;
	struct introduction peer;
	uint32_t seed;
	uint32_t psn;        /* that this side begins with */
	uint64_t rounds;     /* that have ended */
	uint32_t awaited;    /* completions that the round waits for, a bit for each kind */
	bool due;            /* passive side: the other has given, and this side has yet to */
	time_t progress;     /* when it last got on */
	const char *failure; /* of an operation; NULL = none */
};

/* Opens a QP, and takes over fd. The active side introduces itself. */
void connection_open(struct connection *c, int fd, bool active);
void connection_close(struct connection *c);
/* fd is readable. False: the other side has ended. */
bool connection_hear(struct connection *c);
void connection_complete(struct connection *c, const struct ibv_wc *wc);
/* Exits if the connection does not get on, or has failed although the other side lives. */
void connection_check(const struct connection *c);
/* Whether no round runs, so that the active side may begin one or end. */
bool connection_idle(const struct connection *c);
void connection_begin_round(struct connection *c);

/* Of a work request, or a completion. */
uint32_t connection_index(uint64_t wr_id);
uint32_t connection_generation(uint64_t wr_id);

#endif
