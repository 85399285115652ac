/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a station of a fixture has of a real device, by libibverbs: regions at the addresses
 * that the text gives them, windows, completion queues, queue pairs. What cannot be made ends
 * the program with a sentence.
 */
#ifndef URXE_INTEROP_OBJECTS_H
#define URXE_INTEROP_OBJECTS_H

#include <infiniband/verbs.h>

#include "fixture.h"

#define OBJECTS_WINDOWS 4

struct objects {
	const struct fixture *fixture;
	enum side side;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* NULL: each QP has its own receive queue */
	uint32_t gid_index;
	uint8_t *memory[FIXTURE_REGIONS];
	struct ibv_mr *mr[FIXTURE_REGIONS];
	struct ibv_mw *mw[OBJECTS_WINDOWS];
	unsigned n_mw;
	struct ibv_qp *qp[FIXTURE_CONNECTIONS];
	struct ibv_ah *ah; /* of datagrams */
};

/* Ends the program with what could not be done, and errno's text. */
void objects_fail(const char *what) __attribute__((noreturn));

/* The objects of a fixture's station on a device; QPs are in RESET. */
void objects_create(struct objects *objects, const struct fixture *fixture, enum side side,
		    const char *device);
/* Brings the QPs to RTS, by a text that has both stations' numbers; it is the one from now on. */
void objects_connect(struct objects *objects, const struct fixture *fixture);

#endif
