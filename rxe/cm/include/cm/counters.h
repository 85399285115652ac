/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the connection manager counts. */
#ifndef URXE_CM_COUNTERS_H
#define URXE_CM_COUNTERS_H

#include <stdint.h>

/* X(identifier, printed name, meaning) */
#define CM_COUNTER_LIST(X)                                                                      \
	X(IN, "cm_in", "messages that came in")                                                 \
	X(OUT, "cm_out", "messages that were sent, repetitions too")                            \
	X(REPEATED, "cm_repeated", "requests that were sent again, as nobody answered")         \
	X(TIMED_OUT, "cm_timed_out", "requests that were given up")                             \
	X(DUPLICATE, "cm_duplicate", "messages that had been answered before")                  \
	X(REJECTED, "cm_rejected", "connection requests that were rejected here")               \
	X(MALFORMED, "cm_malformed", "no message of the communication management class")        \
	X(UNSUPPORTED, "cm_unsupported", "a message that is not spoken here: alternate paths")  \
	X(STRAY, "cm_stray", "about a connection that is not there")                            \
	X(UNEXPECTED, "cm_unexpected", "does not fit the connection's state")                   \
	X(STALE, "cm_stale", "a queue pair that is connected already, as far as is known here") \
	X(NO_ROOM, "cm_no_room", "requests for which there was no memory or no place in a backlog")

#define CM_COUNTER_ENUM(id, name, text) CM_COUNT_##id,
enum cm_counter { CM_COUNTER_LIST(CM_COUNTER_ENUM) CM_COUNTER_COUNT };
const char *cm_counter_name(enum cm_counter counter);

#endif
