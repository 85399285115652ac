/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Failures of connections (--failures): at a random moment, mostly with requests outstanding, one
 * end of a connection makes a mistake. check/error.c checks the consequences. */
#ifndef URXE_SIM_HOST_FAILURE_H
#define URXE_SIM_HOST_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct stream;
struct world;

enum failure_kind {
	FAILURE_NONE,
	FAILURE_STATE,     /* the end moves its QP to the error state */
	FAILURE_SEGMENT,   /* a request has a local key that grants nothing */
	FAILURE_MALFORMED, /* the end posts a malformed request */
	FAILURE_KEY,       /* RC: a request has a remote key or address without rights */
	FAILURE_RECEIVES,  /* RC: the end posts no more receives, and RNR retries are limited */
};

/* The failure of a connection. */
struct failure {
	uint8_t kind;   /* enum failure_kind */
	unsigned side;  /* index of the end that makes the mistake */
	uint32_t after; /* number of posted requests before the mistake: of the end's own stream,
			   or of the other stream if the end posts none */
	bool begun;     /* the end has made the mistake */
	uint8_t end_status; /* FAILURE_MALFORMED: enum urxe_wc_status of the request */
};

/* Chooses the connections that fail, and how, before they are opened. */
void failure_plan(struct world *world);
/* The application's turn: may move the QP to the error state, or stop posting receives. */
void failure_turn(struct endpoint *end);
/* Whether the QP may be in the error state now. */
bool failure_may_stop(const struct endpoint *end);
/* Whether the next request of the stream is the mistake. */
bool failure_is_next(const struct stream *stream);
/* Whether the request with this index is the mistake. */
bool failure_is_mistake(const struct stream *stream, uint32_t index);
/* Posts the mistaken request; returns the engine's result. */
int failure_post(struct stream *stream);

#endif
