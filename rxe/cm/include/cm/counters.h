/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of the connection manager. */
#ifndef URXE_CM_COUNTERS_H
#define URXE_CM_COUNTERS_H

/* X(identifier, printed name, meaning) */
#define CM_COUNTER_LIST(X)                                                                     \
	X(IN, "cm_in", "messages received")                                                    \
	X(OUT, "cm_out", "messages sent, with repetitions")                                    \
	X(REPEATED, "cm_repeated", "requests and replies sent again for want of an answer")    \
	X(TIMED_OUT, "cm_timed_out", "requests and replies given up after all retries")        \
	X(DUPLICATE, "cm_duplicate", "messages that were answered before")                     \
	X(REJECTED, "cm_rejected", "rejections sent: REJs, and SIDR_REPs that refuse")         \
	X(MALFORMED, "cm_malformed",                                                           \
	  "messages that are not of the communication management class")                       \
	X(UNSUPPORTED, "cm_unsupported",                                                       \
	  "messages about alternate paths, which are not supported")                           \
	X(STRAY, "cm_stray", "messages about an unknown connection")                           \
	X(UNEXPECTED, "cm_unexpected", "messages that do not fit the state of the connection") \
	X(FORGED, "cm_forged", "answers without the transaction ID of the request")            \
	X(CROWDED, "cm_crowded",                                                               \
	  "connections ended early or requests ignored because too many wait for their peer")  \
	X(STALE, "cm_stale", "requests of a queue pair that is connected already")             \
	X(NO_ROOM, "cm_no_room",                                                               \
	  "requests ignored for want of memory or of a place in the backlog")                  \
	X(FROZEN, "cm_frozen", "messages for a program that is saved at the moment")

#define CM_COUNTER_ENUM(id, name, text) CM_COUNT_##id,
enum cm_counter { CM_COUNTER_LIST(CM_COUNTER_ENUM) CM_COUNTER_COUNT };

#endif
