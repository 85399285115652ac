/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of a fixture's station on a real device, by libibverbs: regions at the text's
 * addresses, windows, CQs and QPs. If an object cannot be created, the program exits with an error
 * message.
 */
#ifndef URXE_INTEROP_OBJECTS_H
#define URXE_INTEROP_OBJECTS_H

#include <infiniband/verbs.h>

#include "text/fixture.h"

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
	struct ibv_ah *ah; /* UD */
};

/* Exits with the failed action and errno's text. */
void objects_fail(const char *what) __attribute__((noreturn));

/* Creates the objects of a fixture's station on a device, with QPs in RESET. */
void objects_create(struct objects *objects, const struct fixture *fixture, enum side side,
		    const char *device);
/* Brings the QPs to RTS with a text that has both stations' numbers, and keeps that text. */
void objects_connect(struct objects *objects, const struct fixture *fixture);

#endif
