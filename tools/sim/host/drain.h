/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Drained send queues (--drains): at a random moment the application moves the QP of one end to
 * SQD. The requests that are under way end; the application goes on posting, and the new requests
 * wait. Some time after the event SQ_DRAINED the application moves the QP back to RTS.
 * check/event.c checks the event, and that a drained send queue completes no request.
 */
#ifndef URXE_SIM_HOST_DRAIN_H
#define URXE_SIM_HOST_DRAIN_H

#include <stdint.h>

struct endpoint;
struct world;

enum drain_state {
	DRAIN_NONE,
	DRAIN_BEGUN, /* the QP is in SQD, and the event has not come */
	DRAIN_ENDED, /* the event has come; the QP is still in SQD */
};

struct drain {
	uint8_t state;  /* enum drain_state */
	uint32_t times; /* number of drains of the send queue that are still to begin */
};

/* Chooses the ends whose send queues are drained. */
void drain_plan(struct world *world);
/* The application's turn: may begin a drain, or end one. */
void drain_turn(struct endpoint *end);

#endif
