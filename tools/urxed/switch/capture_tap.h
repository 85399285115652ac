/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Those who capture what passes the switch. While there is one, all frames do. */
#ifndef URXE_URXED_SWITCH_CAPTURE_TAP_H
#define URXE_URXED_SWITCH_CAPTURE_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture_ring.h"
#include "urxed/session/session.h"

#define CAPTURE_TAPS 4 /* at a time */

struct capture_tap {
	int socket;                  /* to who captures; -1 = free */
	char port[SWITCH_PORT_NAME]; /* name or number of the only one wanted; "" = all */
	struct capture_writer writer;
};

struct capture_taps {
	struct sessions *sessions;
	uint32_t n;
	struct capture_tap list[CAPTURE_TAPS];
};

void capture_taps_init(struct capture_taps *all, struct sessions *sessions);
/*
 * Starts a capture of the port of that name or number, or of all where it is "". `socket` is
 * closed when it ends. Returns the ring's descriptor, -EBUSY where there are too many, -ENODEV
 * where there is no such port, or another negative errno value; then the socket stays the
 * caller's.
 */
int capture_taps_start(struct capture_taps *all, int socket, const char *port);
/* Ends the capture on a socket that has hung up; false where there is none on it. */
bool capture_taps_end(struct capture_taps *all, int socket);
void capture_taps_end_all(struct capture_taps *all);

#endif
