/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The captures in progress: the daemon's end of urxe capture. While a capture runs, processes send
 * all frames through the switch, whose tap copies them to the capture's ring. */
#ifndef URXE_URXED_SWITCH_CAPTURE_TAP_H
#define URXE_URXED_SWITCH_CAPTURE_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/capture_ring.h"
#include "urxed/session/session.h"

#define CAPTURE_TAPS 4 /* most captures at a time */
/* Only root and the daemon's own user may capture. If these are two users, each may have half. */
#define CAPTURE_TAPS_PER_USER (CAPTURE_TAPS / 2)

struct capture_tap {
	int socket; /* connection to urxe capture; -1 = unused */
	uid_t user;
	char port[SWITCH_PORT_NAME]; /* name or number of the captured port; "" = all ports */
	struct capture_writer writer;
};

struct capture_taps {
	struct sessions *sessions;
	uint32_t n;
	struct capture_tap list[CAPTURE_TAPS];
	/* The capture that was started with `record`; NULL = none. */
	struct capture_tap *recording_tap;
};

void capture_taps_init(struct capture_taps *all, struct sessions *sessions);
/*
 * Starts a capture of the port of that name or number, or of all ports for "". Call
 * capture_taps_end when `socket` hangs up. Returns a descriptor of the ring's memory, into which
 * the daemon writes frames; the caller sends it to the capturing program and closes it. Errors:
 * -EBUSY: too many captures of all users or of this one; -ENODEV: no such port; -EALREADY: another
 * capture records; or another negative errno value. `record`: the caller will call
 * capture_taps_record.
 */
int capture_taps_start(struct capture_taps *all, int socket, const char *port, bool record);
/*
 * Call it after the answer to a capture; without `record` it does nothing. Asks each process whose
 * port is captured, also those that attach later, to record its engine into a ring. The daemon
 * sends the ring's descriptor to the capturing program (struct control_recording).
 */
void capture_taps_record(struct capture_taps *all, int socket);
/* Ends the capture whose socket has hung up; the caller closes the socket. Returns false if no
 * capture has that socket. */
bool capture_taps_end(struct capture_taps *all, int socket);
/* Ends all captures, and closes their sockets. */
void capture_taps_end_all(struct capture_taps *all);

#endif
